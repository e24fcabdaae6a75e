"""Bins of columns of numbers and dates."""

from typing import TYPE_CHECKING, Any

import numpy as np

from unordinal.data.schema import decimals_of, numbers_of

if TYPE_CHECKING:
    import pandas as pd

MOST_DECIMALS = 6  # of numbers that count as multiples of a step


def step_of(numbers: np.ndarray) -> float:
    """Return the largest step that divides all differences between the numbers; 0 if even 1e-6 does not divide them.

    >>> step_of(np.array([3.5, 4.0, 7.5])), step_of(np.array([10.0, 40.0])), step_of(np.array([0.1, 2**0.5]))
    (0.5, 30.0, 0.0)
    """
    for decimals in range(MOST_DECIMALS + 1):
        scaled = numbers * 10**decimals
        whole = np.round(scaled)
        if np.abs(whole).max() < 2**53 and bool((np.round(whole / 10**decimals, decimals) == numbers).all()):
            steps = np.unique(whole - whole.min()).astype(np.int64)
            return float(np.round(int(np.gcd.reduce(steps)) / 10**decimals, decimals)) or 1.0
    return 0.0


def bins_of(
    every: "pd.Series[Any]", train: "pd.Series[Any]", dtype: str, num: int, step: float
) -> tuple[tuple[float, float], ...]:
    """Return bins of about equally many training rows; a value with a large share of them is a bin of its own.

    Args:
        every: the values of all rows, whose extremes are the outer edges.
        train: those of the training rows.
        dtype: their type.
        num: the number of bins.
        step: the step between possible values, 0 if any number may occur.
    """
    numbers, seen = numbers_of(every, dtype), numbers_of(train.dropna(), dtype)
    values, counts = np.unique(seen, return_counts=True)
    atoms = values[counts >= max(2.0, len(seen) / (2 * num))]
    rest = np.sort(seen[~np.isin(seen, atoms)])
    low, high = float(numbers.min()), float(numbers.max())
    shares = np.linspace(0, 1, max(2, num - len(atoms) + 1))
    inner = np.unique(np.quantile(rest, shares[:-1], method="lower")) if len(rest) else np.zeros(0)
    edges = sorted({low, *(float(v) for v in inner if v > low)})
    found: list[tuple[float, float]] = []
    for start, stop in zip(edges, [*edges[1:], neighbour(high, step, 1)], strict=True):
        begin = start
        for atom in sorted(float(a) for a in atoms if start <= a < stop):
            if atom > begin:
                found.append((begin, neighbour(atom, step, -1)))
            found.append((atom, atom))
            begin = neighbour(atom, step, 1)
        if begin < stop:
            found.append((begin, neighbour(stop, step, -1)))
    return tuple(found)


def neighbour(value: float, step: float, sign: int) -> float:
    """Return the number after (`sign` 1) or before (-1) a value: a step away, or the next float."""
    if not step:
        return float(np.nextafter(value, sign * np.inf))
    return float(np.round(value + sign * step, decimals_of(step)))
