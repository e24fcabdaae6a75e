"""Cells of a table: predict a column, and fill missing cells."""

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
from unordinal.names import check_known
from unordinal.numerics import draw_categorical
from unordinal.parallel.randomness import generator_of
from unordinal.settings import NOT_SERVED, BatchSize, Flag, Request, Seed

if TYPE_CHECKING:
    import pandas as pd

BATCH = 1024


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
    model: CategoricalModel,
    spec: DataSpec,
    known: Tensor,
    places: list[int],
    batch_size: int,
    *,
    is_quick: bool = False,
) -> list[Tensor]:
    """Return the log-probabilities (N, K) of the values of some columns given known cells (N, D), -1 elsewhere.

    The class of missing values gets no probability: a cell is filled with a value.
    """
    device, parts, conditional = device_of(model), [], conditional_of(model)
    log_probs = (conditional.quick if is_quick else None) or conditional.log_probs
    for part in known.split(batch_size):
        parts.append([log_p.double().cpu() for log_p in log_probs(part.to(device), places)])
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
    if names:
        check_known("column", asked.column, names)
    known = read_rows(spec, asked.data).known
    place = names.index(asked.column)
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
