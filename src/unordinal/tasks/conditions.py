"""Conditions on the columns of a table: `income=>50K`, `age>=60`."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unordinal.data.schema import Column
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel, device_of
from unordinal.names import check_known
from unordinal.numerics import Rng, draw_categorical

CONDITION = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign>>=|<=|!=|=|>|<)\s*(?P<value>.*?)\s*")
MOST_DRAWS = 1000  # times as many rows as are wanted, before conditions count as impossible


@dataclass(frozen=True)
class Conditions:
    """Which classes each column may have.

    Args:
        known: the class of columns that may have one only, -1 elsewhere: (D,).
        allowed: the columns that may have several, but not all of their classes, and which (K,).
    """

    known: Tensor
    allowed: dict[int, np.ndarray]

    def hold(self, x: Tensor) -> Tensor:
        """Return which rows (N, D) satisfy the conditions: (N,)."""
        fits = torch.ones(len(x), dtype=torch.bool)
        for column, classes in self.allowed.items():
            fits &= torch.from_numpy(classes)[x[:, column]]
        return fits


def conditions_of(spec: DataSpec, texts: tuple[str, ...]) -> Conditions:
    """Return what conditions such as `age>=60` mean for the columns of a table."""
    if not spec.schema:
        raise ValueError(f"`where` is for tables; {spec.name} is not one")
    names, found = [column.name for column in spec.schema], dict[int, np.ndarray]()
    for text in texts:
        match = CONDITION.fullmatch(text)
        if match is None:
            few = min(spec.schema, key=lambda column: len(column.classes))
            raise ValueError(f"`where` takes conditions such as {few.name}={few.classes[0]}, got {text!r}")
        check_known("column", match["name"], names)
        place = names.index(match["name"])
        column = spec.schema[place]
        allowed = allowed_classes(column, match["sign"], match["value"], text)
        found[place] = found.get(place, np.ones(len(column.classes), bool)) & allowed
    for place, allowed in found.items():
        if not allowed.any():
            raise ValueError(f"no value of {names[place]} satisfies {' and '.join(texts)}")
    known = torch.full((len(names),), -1)
    for place, allowed in found.items():
        if allowed.sum() == 1:
            known[place] = int(allowed.argmax())
    several = {place: allowed for place, allowed in found.items() if allowed.sum() > 1 and not allowed.all()}
    return Conditions(known, several)


def allowed_classes(column: Column, sign: str, value: str, text: str) -> np.ndarray:
    """Return which classes of a column satisfy one condition: (K,) booleans."""
    if sign in ("=", "!="):
        is_it = np.arange(len(column.classes)) == column.class_of(value)
        return is_it if sign == "=" else ~is_it
    try:
        edge = column.number(value)
        bounds = column.bins or tuple((column.number(v), column.number(v)) for v in column.values)
    except ValueError as error:
        raise ValueError(f"{text!r}: {sign} is for columns of numbers, and for numbers") from error
    holds: dict[str, Callable[[float], bool]] = {
        ">=": lambda v: v >= edge, "<=": lambda v: v <= edge, ">": lambda v: v > edge, "<": lambda v: v < edge
    }  # fmt: skip
    inside = []
    for low, high in bounds:
        both = [holds[sign](low), holds[sign](high)]
        if both[0] != both[1]:
            near = " or ".join(column.shown(edge, edge) for edge in (low, high + column.spacing))
            raise ValueError(f"{text!r} cuts the bin {column.shown(low, high)} of {column.name}; use {near}")
        inside.append(both[0])
    return np.array(inside + [False] * (len(column.classes) - len(inside)))  # neither `other` nor `missing`


def with_range_drawn(model: CategoricalModel, conditions: Conditions, num: int, generator: Rng) -> Tensor:
    """Return the known classes of rows (num, D), -1 where they are free, after drawing one of the columns with ranges.

    It is the column whose range is the least likely given what is known. Its class is drawn from its distribution given
    what is known, within the range: this is exact, and few rows are rejected.
    """
    known = conditions.known.repeat(num, 1)
    if not conditions.allowed or model.conditional is None:
        return known
    places = list(conditions.allowed)
    found = model.conditional.log_probs(conditions.known.unsqueeze(0).to(device_of(model)), places)
    within = []
    for place, (log_p,) in zip(places, found, strict=True):
        is_allowed = torch.from_numpy(conditions.allowed[place])
        within.append(torch.where(is_allowed, log_p.double().cpu(), -math.inf))
    place, log_p = min(zip(places, within, strict=True), key=lambda both: float(both[1].logsumexp(dim=0)))
    known[:, place] = draw_categorical(log_p.expand(num, -1), generator)
    return known


def drawn_where(draw: Callable[[int, int], Tensor], conditions: Conditions, num: int) -> tuple[Tensor, float]:
    """Draw rows until enough of them satisfy all conditions.

    Args:
        draw: draws a number of rows that satisfy some of the conditions, with the number of earlier draws as its seed.
        conditions: the conditions.
        num: how many rows.

    Returns:
        The rows, of shape (num, D), and the share of draws that were accepted.
    """
    parts: list[Tensor] = []
    accepted = tried = 0
    while accepted < num:
        share = max(accepted / tried, 1 / MOST_DRAWS) if tried else 1.0
        wanted = min(4 * num, max(64, round((num - accepted) / share)))
        x = draw(wanted, len(parts))
        kept = x[conditions.hold(x)]
        parts.append(kept)
        accepted, tried = accepted + len(kept), tried + wanted
        if tried > MOST_DRAWS * max(num, 64) and accepted < num:
            raise ValueError(f"only {accepted} of {tried:,} rows satisfied the conditions; ask for less")
    return torch.cat(parts)[:num], accepted / tried
