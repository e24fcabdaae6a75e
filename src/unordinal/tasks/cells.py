"""Cells of a table: predict a column, fill missing cells, and measure how surprising rows and cells are."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.abilities import Conditional
from unordinal.data import frame_of
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import bound
from unordinal.names import check_known
from unordinal.numerics import draw_categorical
from unordinal.parallel.randomness import generator_of
from unordinal.settings import NOT_SERVED, BatchSize, Flag, Range, Request, Seed

if TYPE_CHECKING:
    import pandas as pd

BATCH = 1024
DRAWS = 32  # of a bound, for each row
MOST_CELLS = 1000  # rows whose cells are measured unless all are asked for
CANDIDATES = 3  # cells of a row that may be named as the likeliest error
OTHERS = 8  # cells of a row that may be wrong too
MOST_FREQUENT = 1 - 1e-9  # the largest frequency of a value, as an error must leave it


@dataclass(frozen=True)
class Predict(Request):
    """Predict one column of a table from the others: the probability of each of its values."""

    data: Annotated[Any, Flag(metavar="DATA"), NOT_SERVED]
    """The rows: a file, or a DataFrame. The column itself may be missing, and so may other cells."""
    column: str
    """The column."""
    batch_size: BatchSize = BATCH
    """Rows at a time."""


@dataclass(frozen=True)
class FillRows(Request):
    """Fill the missing cells of a table."""

    data: Annotated[Any, Flag(metavar="DATA"), NOT_SERVED]
    """The rows: a file, or a DataFrame."""
    how: Literal["best", "draw", "probabilities"] = "best"
    """Take the likeliest value of each cell given what is known of its row, draw all cells of a row together, or list
    the probability of every value of each missing cell."""
    batch_size: BatchSize = BATCH
    """Rows at a time."""
    seed: Seed = 0
    """Seed of the draws, and of numbers within bins."""


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


@dataclass(frozen=True)
class Rows:
    """Rows of a table, read for a model."""

    frame: "pd.DataFrame"  # the rows
    known: Tensor  # their classes (N, D), -1 where a value is missing
    numbers: np.ndarray  # which rows of the table they are, from 1
    num_left_out: int = 0  # rows with a value that the training rows lack
    note: str = ""  # on the first of these


def read_rows(spec: DataSpec, data: Any, *, strict: bool = True) -> Rows:
    """Read a table by the columns of a model. Columns that are not there count as missing.

    Rows with a value that the training rows lack are refused, or left out unless `strict`; they stay if the column has
    the class `other`.
    """
    if not spec.schema:
        raise ValueError(f"this is for models of tables; {spec.name} is not one")
    frame = frame_of(data)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)
    for name in frame.columns:
        check_known("column", name, [column.name for column in spec.schema])
    x, is_unknown = np.full((len(frame), len(spec.schema)), -1), np.zeros((len(frame), len(spec.schema)), bool)
    for place, column in enumerate(spec.schema):
        if column.name in frame.columns:
            found, gone = column.encode(frame[column.name]), frame[column.name].isna().to_numpy()
            x[:, place], is_unknown[:, place] = np.where(gone, -1, found), (found < 0) & ~gone
    left_out, note = is_unknown.any(axis=1), ""
    if left_out.any():
        row, place = (int(v[0]) for v in np.nonzero(is_unknown))
        name = spec.schema[place].name
        note = f"row {row + 1}: {name} has the value {str(frame[name].iloc[row])[:40]!r}, which the training rows lack"
        if strict or left_out.all():
            raise ValueError(note)
    kept = np.flatnonzero(~left_out)
    frame = frame.iloc[kept].reset_index(drop=True)
    return Rows(frame, torch.from_numpy(x[kept]), kept + 1, int(left_out.sum()), note)


def cell_log_probs(
    model: CategoricalModel, spec: DataSpec, known: Tensor, places: list[int], batch_size: int
) -> list[Tensor]:
    """Return the log-probabilities (N, K) of the values of some columns given known cells (N, D), -1 elsewhere.

    The class of missing values gets no probability: a cell is filled with a value.
    """
    device, parts = device_of(model), []
    for part in known.split(batch_size):
        parts.append([log_p.double().cpu() for log_p in conditional_of(model).log_probs(part.to(device), places)])
    found = []
    for place, each in zip(places, zip(*parts, strict=True), strict=True):
        log_p, missing = torch.cat(each), spec.schema[place].missing
        if missing is not None and spec.schema[place].num_values:
            log_p[:, missing] = -math.inf
        found.append(torch.log_softmax(log_p, dim=-1))
    return found


def conditional_of(model: CategoricalModel) -> Conditional:
    """Return the distributions of columns given others; raise a ValueError if the model has none."""
    if model.conditional is None:
        raise ValueError(
            f"a {type(model).__name__} has no distribution of one column given others; use arm with `model.order` any, "
            "absorbing or chow-liu"
        )
    return model.conditional


def predict(model: CategoricalModel, spec: DataSpec, asked: Predict) -> "tuple[pd.DataFrame, float | None]":
    """Return the probability of each value of a column, a row for each row of the table; and the spread over orders.

    The spread is how far the probabilities of single orders are from each other, for models that have several: their
    standard deviation, in the mean over the first rows and all values. None for models with one distribution.
    """
    import pandas as pd

    names = [column.name for column in spec.schema]
    check_known("column", asked.column, names)
    place = names.index(asked.column)
    known = read_rows(spec, asked.data).known
    known[:, place] = -1
    with asked.progress("Predicting", None):
        (log_p,) = cell_log_probs(model, spec, known, [place], asked.batch_size)
    p, spread = log_p.exp(), conditional_of(model).spread
    some = known[: asked.batch_size].to(device_of(model))
    found = None if spread is None else float(spread(some, place).mean())
    return pd.DataFrame({name: p[:, k].numpy() for k, name in values_of(spec, place)}), found


def values_of(spec: DataSpec, place: int) -> list[tuple[int, str]]:
    """Return the classes of a column with their names, without the class of missing values."""
    column = spec.schema[place]
    return [(k, name) for k, name in enumerate(column.classes) if k != column.missing or not column.num_values]


def fill_rows(model: CategoricalModel, spec: DataSpec, asked: FillRows) -> "tuple[pd.DataFrame, int]":
    """Return the table with its missing cells filled, or with `how` probabilities a list of values for each missing
    cell; and how many there were."""
    import pandas as pd

    rows = read_rows(spec, asked.data)
    frame, known = rows.frame, rows.known
    is_gap = known < 0
    if not bool(is_gap.any()):
        raise ValueError("no cell of the table is missing; there is nothing to fill")
    filled = known.clone()
    if asked.how == "draw":
        generator = generator_of(asked.seed)
        with asked.progress("Filling", known.shape[1]) as advance:
            for place in range(known.shape[1]):  # one after another, so that the cells of a row fit together
                at = torch.nonzero(is_gap[:, place]).flatten()
                if len(at):
                    (log_p,) = cell_log_probs(model, spec, filled[at], [place], asked.batch_size)
                    filled[at, place] = draw_categorical(log_p, generator)
                advance(1)
    else:
        at = torch.nonzero(is_gap.any(dim=1)).flatten()
        places = torch.nonzero(is_gap.any(dim=0)).flatten().tolist()
        listed = []
        with asked.progress("Filling", len(at)) as advance:
            for part in at.split(asked.batch_size):
                each = cell_log_probs(model, spec, known[part], places, asked.batch_size)
                for place, log_p in zip(places, each, strict=True):
                    gaps = is_gap[part, place]
                    filled[part[gaps], place] = log_p[gaps].argmax(dim=-1)
                    if asked.how == "probabilities":
                        listed.append(listed_values(spec, place, rows.numbers[part[gaps].numpy()], log_p[gaps]))
                advance(len(part))
        if listed:
            return pd.concat(listed).sort_values(["row", "column"], kind="stable"), int(is_gap.sum())
    values, out = spec.frame(filled, asked.seed), frame.copy()
    for place, column in enumerate(spec.schema):
        is_filled = is_gap[:, place].numpy()
        if column.name not in out.columns:
            out[column.name] = values[column.name]
        elif is_filled.any():
            out[column.name] = out[column.name].astype(object).where(~is_filled, values[column.name].astype(object))
    return out[[column.name for column in spec.schema]], int(is_gap.sum())


def listed_values(spec: DataSpec, place: int, numbers: np.ndarray, log_p: Tensor) -> "pd.DataFrame":
    """Return the probability of every value of a column for some rows, by their numbers, as a long table."""
    import pandas as pd

    values = values_of(spec, place)
    cells = {"row": np.repeat(numbers, len(values)), "column": spec.schema[place].name}
    cells |= {"value": [name for _, name in values] * len(numbers)}
    return pd.DataFrame({**cells, "probability": log_p[:, [k for k, _ in values]].exp().flatten().numpy()})


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
                every, again = cell_log_probs(model, spec, hidden, places, asked.batch_size), lowest[:, 0].clone()
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
