"""How surprising the rows of a table are, and which of their cells is the likeliest error."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import bound
from unordinal.parallel.randomness import generator_of
from unordinal.settings import NOT_SERVED, BatchSize, Flag, Range, Request, Seed
from unordinal.tasks.cells import BATCH, Rows, cell_log_probs, read_rows

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 32  # of a bound, for each row
MOST_CELLS = 1000  # rows whose cells are measured unless all are asked for
CANDIDATES = 3  # cells of a row that may be named as the likeliest error
OTHERS = 8  # cells of a row that may be wrong too
MOST_FREQUENT = 1 - 1e-9  # the largest frequency of a value, as an error must leave it


@dataclass(frozen=True)
class MeasureRows(Request):
    """Measure how surprising the rows of a table are, and which of their cells."""

    data: Annotated[Any, Flag(metavar="DATA"), NOT_SERVED]
    """The rows: a file, or a DataFrame."""
    cells: Annotated[int | Literal["all"], Range(0)] = MOST_CELLS
    """Tables: for how many of the most surprising rows to measure every cell given all others."""
    strict: bool = False
    """Tables: refuse rows with values that the training rows lack, instead of leaving them out."""
    batch_size: BatchSize = BATCH
    """Rows at a time."""
    seed: Seed = 0
    """Seed of the draws of a bound."""


def measure_rows(model: CategoricalModel, spec: DataSpec, asked: MeasureRows) -> "tuple[pd.DataFrame, Rows]":
    """Return the bits of every row, the most surprising first, and for some the most suspicious cell; and the rows.

    A missing cell is summed out where the model can do that, and otherwise counts as the class of missing values.
    `cell` is the column whose value is the likeliest error (see `suspicious_cells`), `cell_bits` are the bits of this
    value given all other columns, and `excess` are these less their mean, the entropy of the column given all others.
    Bits of cells do not add up to those of the row.
    """
    import pandas as pd

    rows = read_rows(spec, asked.data, strict=asked.strict)
    bits = row_bits(model, spec, rows.known, asked)
    order = np.argsort(-bits.numpy(), kind="stable")
    out = pd.DataFrame({"row": rows.numbers[order], "bits": bits.numpy()[order]})
    num = len(order) if asked.cells == "all" else min(asked.cells, len(order))
    if num and model.conditional is not None:
        found = suspicious_cells(model, spec, rows.known[torch.from_numpy(order[:num].copy())], asked)
        worst = found.log_odds.argmax(dim=1, keepdim=True)
        names = [spec.schema[place].name for place in worst.flatten().tolist()]
        values = [str(rows.frame[name].iloc[row]) for name, row in zip(names, order[:num].tolist(), strict=True)]
        numbers = {"cell_bits": found.bits, "excess": found.excess, "log_odds": found.log_odds}
        each = {name: part.gather(1, worst).flatten().numpy() for name, part in numbers.items()}
        out = out.join(pd.DataFrame({"cell": names, "value": values, **each}))
    return out, rows


@dataclass(frozen=True)
class Cells:
    """Figures of cells (N, D) in bits; those of missing cells are -inf."""

    bits: Tensor  # of each cell given all others
    excess: Tensor  # how far they exceed their mean
    log_odds: Tensor  # how much likelier the value is as an error than as the right value


def suspicious_cells(model: CategoricalModel, spec: DataSpec, known: Tensor, asked: MeasureRows) -> Cells:
    """Measure each cell given all others, and find the cell of each row that is the likeliest error.

    An error replaces a value by a different one, drawn by frequency. The odds compare how likely the value is as an
    error and as the right value. A second error in a row would mislead them, so that the odds of the `CANDIDATES` most
    suspicious cells are computed again without one of the `OTHERS` next ones, and their harmonic mean is taken. The
    other cells of the row then have log-odds of -inf.
    """
    nothing = torch.full((1, known.shape[1]), -1)
    places = list(range(known.shape[1]))
    usual = [log_p[0] for log_p in cell_log_probs(model, spec, nothing, places, 1)]
    lowest = torch.full(known.shape, -math.inf, dtype=torch.float64)
    bits, excess, first, odds = (lowest.clone() for _ in range(4))
    num_others = min(OTHERS, len(places) - 1)
    num_passes = len(places) + min(CANDIDATES, len(places)) * num_others
    with asked.progress(f"Measuring the cells of {len(known):,} rows", num_passes) as advance:
        for place in places:
            (log_p,) = cell_log_probs(model, spec, without(known, place), [place], asked.batch_size)
            here, rows = known[:, place], torch.nonzero(known[:, place] >= 0).flatten()
            log_p, here = log_p[rows], here[rows]
            own = -log_p.gather(1, here.unsqueeze(1)).squeeze(1)
            bits[rows, place] = own
            excess[rows, place] = own + (log_p.exp() * log_p.clamp(min=-1e4)).sum(dim=-1)
            first[rows, place] = error_odds(log_p, here, usual[place])
            advance(1)
        top = first.argsort(dim=1, descending=True, stable=True)[:, : 1 + OTHERS]
        for rank in range(min(CANDIDATES, len(places))):
            cell, found = top[:, rank], []
            for other in (other for other in range(1 + num_others) if other != rank):
                hidden = without(without(known, cell), top[:, other])
                every = cell_log_probs(model, spec, hidden, places, asked.batch_size, is_quick=True)
                again = lowest[:, 0].clone()
                for place in places:
                    rows = torch.nonzero((cell == place) & (known[:, place] >= 0)).flatten()
                    again[rows] = error_odds(every[place][rows], known[rows, place], usual[place])
                found.append(again)
                advance(1)
            mean = -torch.logsumexp(-torch.stack(found), dim=0) + math.log(num_others) if found else first[:, rank]
            odds.scatter_(1, cell.unsqueeze(1), mean.unsqueeze(1))
    return Cells(*(part / math.log(2) for part in (bits, excess, odds)))


def without(known: Tensor, place: int | Tensor) -> Tensor:
    """Return known cells (N, D) with one column of each row hidden, the same or another (N,) for each row."""
    at = torch.as_tensor(place).expand(len(known)).unsqueeze(1)
    return known.scatter(1, at, -1)


def error_odds(log_p: Tensor, here: Tensor, usual: Tensor) -> Tensor:
    """Return the log of how much likelier a value is as an error than as the right value: (N,).

    Args:
        log_p: the log-probabilities of the right value of a cell, (N, K).
        here: the value that the cell has, (N,).
        usual: the log-frequencies of the values, (K,): an error is a value drawn by these, other than the right one.
    """
    at = here.unsqueeze(1)
    replaced = log_p - torch.log1p(-usual.exp().clamp(max=MOST_FREQUENT))  # by any of the other values
    wrong = usual[here] + replaced.scatter(1, at, -math.inf).logsumexp(dim=1)
    return wrong - log_p.gather(1, at).squeeze(1)


def row_bits(model: CategoricalModel, spec: DataSpec, known: Tensor, asked: MeasureRows) -> Tensor:
    """Return the bits of every row (N,) float64."""
    device, parts = device_of(model), []
    generator = generator_of(asked.seed, device=device)
    missing = torch.tensor([-1 if column.missing is None else column.missing for column in spec.schema])
    with asked.progress("Scoring", len(known)) as advance:
        for rows in known.split(asked.batch_size):
            if model.marginals is not None:
                nats = model.marginals(rows.to(device)).double().cpu()
            else:
                x = torch.where(rows < 0, missing, rows)
                if bool((x < 0).any()):
                    raise ValueError("a cell is missing in a column that has no class for it; use `model.order` any")
                draws = 1 if model.is_exact else DRAWS
                nats = bound(model, x.to(device), draws=draws, generator=generator).mean(dim=0)
            parts.append(-nats / math.log(2))
            advance(len(rows))
    return torch.cat(parts)
