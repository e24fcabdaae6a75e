"""All examples of a small space, and what is computed of them: means of draws with their errors, chi-square tests."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

LIMIT = 50_000  # of the examples of a space
PER_CALL = 4096  # examples in one call
CHANCE = 1e-4  # with which a check of something right fails by chance, at most
LEAST_EXPECTED = 5.0  # samples of a cell of the chi-square test

Scoring = Callable[[Any], Any]
"""Takes classes (N, L) and returns N numbers, in nats."""


def every_example(space: Any, length: int | None, *, ends: bool = False) -> torch.Tensor:
    """Return all examples of a space, (N, L); raise a ValueError if there are too many."""
    columns = [int(k) for k in space] if isinstance(space, Sequence) else [int(space)] * (length or 0)
    if length is not None and length != len(columns):
        raise ValueError(f"`length` is {length}, but the classes of {len(columns)} positions are given")
    if not columns or min(columns) < 1:
        raise ValueError(f"a space has at least one position and one class, got {space} classes and length {length}")
    if ends and isinstance(space, Sequence):
        raise ValueError("columns with numbers of classes of their own cannot end early; leave out `ends`")
    most = max(columns)
    sizes = range(len(columns) + 1) if ends else [len(columns)]
    total = sum(math.prod(columns[:size]) for size in sizes)
    if total > LIMIT:
        raise ValueError(
            f"the space has {total:,} examples, more than the {LIMIT:,} that are enumerated; make it smaller"
        )
    rows = [
        [*row, *[most] * (len(columns) - size)]
        for size in sizes
        for row in itertools.product(*map(range, columns[:size]))
    ]
    return torch.tensor(rows)


def scores(function: Scoring, x: torch.Tensor) -> np.ndarray:
    """Return the numbers of all examples, (N,) float64."""
    found = [np.asarray(function(part), dtype=np.float64) for part in x.split(PER_CALL)]
    if any(part.shape != (len(rows),) for part, rows in zip(found, x.split(PER_CALL), strict=True)):
        raise ValueError(f"expected one number for each of {len(x)} examples, got {[part.shape for part in found]}")
    return np.concatenate(found)


def mean_and_error(
    function: Scoring, x: torch.Tensor, draws: int, advance: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of draws for each example and their standard errors, two (N,)."""
    if draws < 2:
        raise ValueError(f"`draws` must be at least 2, got {draws}")
    total, squares, first = np.zeros(len(x)), np.zeros(len(x)), scores(function, x)
    shift = np.where(np.isfinite(first), first, 0.0)  # so that squares keep their digits
    for number in range(draws):
        with np.errstate(invalid="ignore"):
            found = (first if number == 0 else scores(function, x)) - shift
            total, squares = total + found, squares + found**2
        advance(1)
    with np.errstate(invalid="ignore"):
        mean = total / draws
        variance = np.maximum(squares / draws - mean**2, 0.0) * draws / (draws - 1)
    return mean + shift, np.sqrt(variance / draws)


def largest_z(num: int) -> float:
    """Return the normal deviate that the largest of `num` exceeds by chance with probability CHANCE."""
    return float(torch.special.ndtri(torch.tensor(1 - CHANCE / (2 * num), dtype=torch.float64)))


def deviates(difference: np.ndarray, errors: np.ndarray, rounding: np.ndarray | float) -> np.ndarray:
    """Return differences in standard errors; those within rounding count as 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(np.abs(difference) <= rounding, 0.0, difference / errors)
    return np.nan_to_num(z, nan=math.inf, posinf=math.inf, neginf=-math.inf)


def indices_of(drawn: Any, x: torch.Tensor) -> np.ndarray:
    """Return the number of each sample among all examples, -1 for something else: (N,)."""
    rows = np.asarray(drawn).reshape(len(drawn), -1)
    place = {tuple(row): number for number, row in enumerate(x.tolist())}
    return np.array([place.get(tuple(row), -1) for row in rows.tolist()])


def chi_square(counts: np.ndarray, p: np.ndarray) -> float:
    """Return the probability of a chi-square statistic at least as large as that of counts under probabilities.

    Examples that are too rare for the test are counted together. If they are still too rare, the probability of as many
    of them is computed separately.

    >>> round(chi_square(np.array([50, 50]), np.array([0.5, 0.5])), 3)
    1.0
    """
    if (counts[p <= 0] > 0).any():
        return 0.0
    expected = p * counts.sum()
    rare = expected < LEAST_EXPECTED
    seen, wanted = counts[~rare].astype(float), expected[~rare]
    together, few = float(counts[rare].sum()), float(expected[rare].sum())
    chances = []
    if few >= LEAST_EXPECTED:
        seen, wanted = np.append(seen, together), np.append(wanted, few)
    elif together:
        chances.append(gamma(torch.special.gammainc, together, few))
    if len(seen) > 1:
        wanted = wanted * seen.sum() / wanted.sum()
        statistic = float(((seen - wanted) ** 2 / wanted).sum())
        chances.append(gamma(torch.special.gammaincc, (len(seen) - 1) / 2, statistic / 2))
    return min(1.0, len(chances) * min(chances, default=1.0))


def gamma(function: Callable[..., torch.Tensor], a: float, x: float) -> float:
    """Return an incomplete gamma function of two numbers."""
    return float(function(*torch.tensor([a, x], dtype=torch.float64)))
