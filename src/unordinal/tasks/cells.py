"""Cells of a table: predict a column, fill missing cells, and measure how surprising rows and cells are."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.data import source_of
from unordinal.data.spec import DataSpec
from unordinal.data.tables import TableSource, read_table
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
    how: Literal["best", "draw"] = "best"
    """Take the likeliest value of each cell given what is known of its row, or draw all cells of a row together."""
    batch_size: BatchSize = BATCH
    """Rows at a time."""
    seed: Seed = 0
    """Seed of the draws, and of numbers within bins."""


@dataclass(frozen=True)
class MeasureRows(Request):
    """Measure how surprising the rows of a table are, and which of their cells."""

    data: Annotated[Any, Flag(metavar="DATA"), NOT_SERVED]
    """The rows: a file, or a DataFrame."""
    cells: Annotated[int, Range(0)] = MOST_CELLS
    """For how many of the most surprising rows to measure every cell given all others."""
    batch_size: BatchSize = BATCH
    """Rows at a time."""
    seed: Seed = 0
    """Seed of the draws of a bound."""


def read_rows(spec: DataSpec, data: Any) -> "tuple[pd.DataFrame, Tensor]":
    """Return the rows of a table as a DataFrame and as classes (N, D), -1 where a value is missing.

    Columns that are not there count as missing. A value that the training rows did not have is refused.
    """
    if not spec.schema:
        raise ValueError(f"this is for models of tables; {spec.name} is not one")
    source = source_of(data)
    if not isinstance(source, TableSource):
        raise ValueError(f"expected a table, a .csv, .tsv or .parquet file or a DataFrame; got {source.name}")
    frame = source.frame if source.frame is not None else read_table(Path(source.path), source.missing)
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1).reset_index(drop=True)
    for name in frame.columns:
        check_known("column", name, [column.name for column in spec.schema])
    classes = []
    for column in spec.schema:
        if column.name not in frame.columns:
            classes.append(np.full(len(frame), -1))
            continue
        found, gone = column.encode(frame[column.name]), frame[column.name].isna().to_numpy()
        wrong = np.flatnonzero((found < 0) & ~gone)
        if len(wrong):
            value = str(frame[column.name].iloc[wrong[0]])[:40]
            raise ValueError(f"row {wrong[0] + 1}: {column.name} has the value {value!r}, which the training rows lack")
        classes.append(np.where(gone, -1, found))
    return frame, torch.from_numpy(np.stack(classes, axis=1))


def cell_log_probs(model: CategoricalModel, spec: DataSpec, known: Tensor, place: int, batch_size: int) -> Tensor:
    """Return the log-probabilities (N, K) of the values of a column given known cells (N, D), -1 elsewhere.

    The class of missing values gets no probability: a cell is filled with a value.
    """
    if model.conditional is None:
        raise ValueError(
            f"a {type(model).__name__} has no distribution of one column given others; use arm with `model.order` any, "
            "absorbing or chow-liu"
        )
    device = device_of(model)
    parts = [model.conditional(part.to(device), place).double().cpu() for part in known.split(batch_size)]
    log_p, missing = torch.cat(parts), spec.schema[place].missing
    if missing is not None and spec.schema[place].num_values:
        log_p[:, missing] = -math.inf
    return torch.log_softmax(log_p, dim=-1)


def predict(model: CategoricalModel, spec: DataSpec, asked: Predict) -> "pd.DataFrame":
    """Return the probability of each value of a column, a row for each row of the table."""
    import pandas as pd

    names = [column.name for column in spec.schema]
    check_known("column", asked.column, names)
    place = names.index(asked.column)
    _, known = read_rows(spec, asked.data)
    known[:, place] = -1
    with asked.progress("Predicting", None):
        p = cell_log_probs(model, spec, known, place, asked.batch_size).exp()
    column = spec.schema[place]
    kept = [k for k, name in enumerate(column.classes) if k != column.missing or not column.num_values]
    return pd.DataFrame({column.classes[k]: p[:, k].numpy() for k in kept})


def fill_rows(model: CategoricalModel, spec: DataSpec, asked: FillRows) -> "tuple[pd.DataFrame, int]":
    """Return the table with its missing cells filled, and how many there were."""
    frame, known = read_rows(spec, asked.data)
    is_gap = known < 0
    if not bool(is_gap.any()):
        raise ValueError("no cell of the table is missing; there is nothing to fill")
    generator, filled = generator_of(asked.seed), known.clone()
    with asked.progress("Filling", int(is_gap.any(dim=0).sum())) as advance:
        for place in range(known.shape[1]):
            rows = torch.nonzero(is_gap[:, place]).flatten()
            if len(rows):
                given = (known if asked.how == "best" else filled)[rows]
                log_p = cell_log_probs(model, spec, given, place, asked.batch_size)
                best = log_p.argmax(dim=-1)
                filled[rows, place] = best if asked.how == "best" else draw_categorical(log_p, generator)
                advance(1)
    values, out = spec.frame(filled, asked.seed), frame.copy()
    for place, column in enumerate(spec.schema):
        gaps = is_gap[:, place].numpy()
        if column.name not in out.columns:
            out[column.name] = values[column.name]
        elif gaps.any():
            out[column.name] = out[column.name].astype(object).where(~gaps, values[column.name].astype(object))
    return out[[column.name for column in spec.schema]], int(is_gap.sum())


def measure_rows(model: CategoricalModel, spec: DataSpec, asked: MeasureRows) -> "pd.DataFrame":
    """Return the bits of every row, the most surprising first, and for some of them the most surprising cell.

    A missing cell is summed out where the model can do that, and otherwise counts as the class of missing values.
    `cell` is the column whose value is the most surprising given all other columns: by its bits less those that the
    column has on average given the same others (`excess`). Bits of cells do not add up to those of the row.
    """
    import pandas as pd

    frame, known = read_rows(spec, asked.data)
    bits = row_bits(model, spec, known, asked)
    order = np.argsort(-bits.numpy(), kind="stable")
    out = pd.DataFrame({"row": order + 1, "bits": bits.numpy()[order]})
    num = min(asked.cells, len(order))
    if num and model.conditional is not None:
        chosen, columns = known[torch.from_numpy(order[:num].copy())], spec.schema
        found = torch.full((num, len(columns)), -math.inf, dtype=torch.float64)
        own = found.clone()
        with asked.progress("Measuring cells", len(columns)) as advance:
            for place in range(len(columns)):
                log_p = cell_log_probs(model, spec, chosen, place, asked.batch_size) / math.log(2)
                entropy = -(log_p.exp2() * log_p.clamp(min=-1e4)).sum(dim=-1)
                here = chosen[:, place]
                seen = -log_p.gather(1, here.clamp(min=0).unsqueeze(1)).squeeze(1)
                own[:, place] = torch.where(here < 0, -math.inf, seen)
                found[:, place] = torch.where(here < 0, -math.inf, seen - entropy)
                advance(1)
        worst = found.argmax(dim=1)
        extra = {"cell": [columns[c].name for c in worst.tolist()]}
        extra["value"] = [str(frame[n].iloc[r]) for n, r in zip(extra["cell"], order[:num].tolist(), strict=True)]
        values = pd.DataFrame(extra)
        values["cell_bits"] = own.gather(1, worst.unsqueeze(1)).squeeze(1).numpy()
        values["excess"] = found.gather(1, worst.unsqueeze(1)).squeeze(1).numpy()
        out = out.join(values)
    return out


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
