"""Long sequences in overlapping windows, whose results are joined where no window is near its edge."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Window:
    """A part of a sequence, and the part of it that counts.

    Args:
        start: the first position of the window.
        stop: the position after its last one.
        first: the first position whose result is taken from this window.
        last: the position after the last one that is.
    """

    start: int
    stop: int
    first: int
    last: int


def windows(length: int, size: int, margin: int, *, is_causal: bool = False) -> list[Window]:
    """Cut a sequence into windows that overlap by twice the margin; every position counts in one of them.

    Args:
        length: the length of the sequence.
        size: the length of a window; a shorter sequence is one window.
        margin: how far from the edges of a window its results count, except at the ends of the sequence.
        is_causal: results depend on earlier positions only, so that the right edge needs no margin.

    >>> [(w.start, w.stop, w.first, w.last) for w in windows(20, 10, 2)]
    [(0, 10, 0, 8), (6, 16, 8, 14), (10, 20, 14, 20)]
    """
    if not 0 <= 2 * margin < size:
        raise ValueError(f"windows of {size} positions need a margin below half of that, got {margin}")
    if length <= size:
        return [Window(0, length, 0, length)]
    right = 0 if is_causal else margin
    found: list[Window] = []
    first = 0
    while first < length:
        start = min(max(0, first - margin), length - size)
        stop = start + size
        last = length if stop == length else stop - right
        found.append(Window(start, stop, first, last))
        first = last
    return found


def batches(x: Tensor, cut: list[Window], batch_size: int) -> Iterator[tuple[list[Window], Tensor]]:
    """Yield some windows at a time and what they see of a sequence (L,): (B, size)."""
    for begin in range(0, len(cut), batch_size):
        some = cut[begin : begin + batch_size]
        yield some, torch.stack([x[window.start : window.stop] for window in some])


def joined(cut: list[Window], parts: list[Tensor]) -> Tensor:
    """Join the results of windows, each (size, ...), to that of the sequence, (L, ...)."""
    return torch.cat([part[w.first - w.start : w.last - w.start] for w, part in zip(cut, parts, strict=True)])
