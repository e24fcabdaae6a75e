"""Draw samples that differ from each other, or from the training data."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

MOST_DRAWS = 50  # times as many samples as are wanted, before the wish counts as impossible


@dataclass
class Distinct:
    """Keeps the samples that are wanted, and counts all.

    Args:
        unique: keep each sample once.
        seen: the rows of the training data, to keep only samples that are not among them; None to keep all.
    """

    unique: bool
    seen: Collection[bytes] | None
    drawn: set[bytes] = field(default_factory=set)
    num: int = 0
    num_novel: int = 0
    kept: list[Tensor] = field(default_factory=list)

    def add(self, x: Tensor) -> None:
        """Take note of samples (N, *D), and keep those that are wanted."""
        for row, key in zip(x, keys_of(x.numpy()), strict=True):
            is_new, is_novel = key not in self.drawn, self.seen is None or key not in self.seen
            self.num += 1
            self.num_novel += is_novel
            self.drawn.add(key)
            if (is_new or not self.unique) and is_novel:
                self.kept.append(row)

    @property
    def shares(self) -> dict[str, float]:
        """The share of different samples among all that were drawn, and of those that the training data lack."""
        found = {"unique": len(self.drawn) / self.num}
        return found if self.seen is None else {**found, "novel": self.num_novel / self.num}


def keys_of(x: np.ndarray) -> list[bytes]:
    """Return a key of each row (N, *D), by which rows are compared."""
    rows = np.ascontiguousarray(x.astype(np.int32)).reshape(len(x), -1)
    return [row.tobytes() for row in rows]


def draw_distinct(
    draw: Callable[[int, int], Tensor], num: int, *, unique: bool, seen: Collection[bytes] | None
) -> tuple[Tensor, dict[str, float]]:
    """Draw until there are enough samples that differ as wanted.

    Args:
        draw: draws a number of samples, with the number of earlier draws as its seed.
        num: how many samples are wanted.
        unique: whether they differ from each other.
        seen: keys of the rows that they must not be; None for none.

    Returns:
        The samples, of shape (num, *D), and the shares among all draws of different samples and of new ones.
    """
    found, turn = Distinct(unique, seen), 0
    while len(found.kept) < num:
        if found.num >= MOST_DRAWS * num:
            raise ValueError(f"only {len(found.kept)} of {found.num:,} samples differ as wanted; ask for fewer")
        found.add(draw(num - len(found.kept) if turn else num, turn))
        turn += 1
    return torch.stack(found.kept[:num]), found.shares
