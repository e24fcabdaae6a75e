"""The splits of a data set: fixed examples for scoring, and random batches for training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unordinal.data.spec import DataSpec
from unordinal.names import unknown

if TYPE_CHECKING:
    import torch
    from torch import Tensor

MOST_COUNTED = 10_000  # examples whose mean number of characters is computed
DEFAULT_SPLIT = "0.9,0.05,0.05"


class Split:
    """One part of a data set, stored as an array of small integers that may be memory-mapped.

    A text is one long sequence of symbols: its examples are consecutive chunks of `length` symbols without overlap, and
    random batches are crops that start anywhere. In an array of examples (N, *D) each row is an example, and random
    batches are drawn from these rows.

    Args:
        symbols: one long sequence (N,), or examples (N, *D).
        length: the length of an example that is cut from a long sequence; None for an array of examples.
        flips: whether to mirror each example of a random batch left to right with probability 1/2.
        labels: the labels given with the examples (N, J), in which the number of a label's classes stands for a missing
            one; None if there are none.
    """

    def __init__(
        self, symbols: np.ndarray, length: int | None = None, *, flips: bool = False, labels: np.ndarray | None = None
    ):
        if (length is None) == (symbols.ndim == 1):
            raise ValueError("one long sequence of symbols needs a `length`, and an array of examples must have none")
        self.symbols, self.length, self.flips, self.labels = symbols, length, flips, labels
        self.short_name = ""  # what it is called in results, where it is all of a file
        self.widths: np.ndarray | None = None  # how many characters each class stands for, (K,), if they differ
        self.names: list[str] = []  # the file name of each map; empty if the examples have no names

    def __len__(self) -> int:
        return len(self.symbols) if self.length is None else len(self.symbols) // self.length

    def __getitem__(self, index: int) -> "Tensor":
        return self.examples(np.array([index]))[0]

    @property
    def num_unscored(self) -> int:
        """The number of symbols at the end of a text that do not fill a chunk and belong to no example."""
        return 0 if self.length is None else len(self.symbols) % self.length

    def examples(self, indices: np.ndarray) -> "Tensor":
        """Return the examples with the given indices: (B, *D) int64."""
        if indices.size and not (indices.min() >= 0 and indices.max() < len(self)):
            raise IndexError(
                f"indices {indices.min()} to {indices.max()} are not all among the {len(self)} examples of the split"
            )
        return self._rows(indices if self.length is None else indices * self.length)

    def given(self, indices: "np.ndarray | list[int]") -> "Tensor | None":
        """Return the labels given with examples: (B, J) int64; None if there are none."""
        import torch

        return None if self.labels is None else torch.from_numpy(np.asarray(self.labels[indices]).astype(np.int64))

    def sizes(self, indices: np.ndarray, end: int | None = None) -> np.ndarray:
        """Return the number of symbols of examples before their ends, the class `end`, or of their characters: (B,)."""
        x = self.examples(indices).numpy()
        if self.widths is not None:
            return np.append(self.widths, 0)[x].sum(axis=1)  # nothing stands after the end of an example
        return (x != (-1 if end is None else end)).reshape(len(x), -1).sum(axis=1)

    def crops(self, num: int, generator: "torch.Generator") -> "tuple[Tensor, list[int]]":
        """Return random examples, (B, *D) int64, and the position or index of each in `symbols`."""
        import torch

        last = len(self.symbols) if self.length is None else len(self.symbols) - self.length + 1
        starts = torch.randint(last, (num,), generator=generator).numpy()
        return self._flipped(self._rows(starts), generator), starts.tolist()

    def _flipped(self, x: "Tensor", generator: "torch.Generator") -> "Tensor":
        if not self.flips:
            return x
        import torch

        is_flipped = torch.rand(len(x), generator=generator) < 0.5
        return torch.where(is_flipped.reshape(-1, *([1] * (x.dim() - 1))), x.flip(-1), x)

    def _rows(self, starts: np.ndarray) -> "Tensor":
        import torch

        index = starts if self.length is None else starts[:, None] + np.arange(self.length)
        return torch.from_numpy(np.asarray(self.symbols[index]).astype(np.int64))


class DrawnSplit(Split):
    """A split whose random batches are newly generated examples: `draw` returns the example of a seed."""

    FIRST_SEED = 1 << 42  # the fixed examples of all splits have smaller seeds

    def __init__(self, symbols: np.ndarray, draw: Callable[[int], np.ndarray], *, flips: bool = False):
        super().__init__(symbols, flips=flips)
        self.draw = draw

    def crops(self, num: int, generator: "torch.Generator") -> "tuple[Tensor, list[int]]":
        """Return newly generated examples, (B, *D) int64, and their seeds."""
        import torch

        seeds = (torch.randint(1 << 42, (num,), generator=generator) + self.FIRST_SEED).tolist()
        x = torch.from_numpy(np.stack([self.draw(seed) for seed in seeds]).astype(np.int64))
        return self._flipped(x, generator), seeds


@dataclass(frozen=True)
class Data:
    """A data set with its splits, ready for training and scoring.

    Args:
        spec: the description of the data: number of classes, shape of an example, vocabulary.
        train: the examples to train on.
        val: the examples that choose the best weights during training.
        test: the examples for the final score.
        notes: remarks for the user, for example on ignored arrays or unused symbols.
        pmf: the exact probability of every x, shape (K,) * D; None if it is unknown.
        num_left_out: the rows of a table that were left out, because a column does not know their value.

    >>> from unordinal.data import load_data
    >>> data = load_data(np.arange(600).reshape(100, 6) % 3)
    >>> len(data.train), len(data.val), data.test[0]
    (90, 5, tensor([0, 1, 2, 0, 1, 2]))
    """

    spec: DataSpec
    train: Split
    val: Split
    test: Split
    notes: tuple[str, ...] = ()
    pmf: np.ndarray | None = None
    num_left_out: int = 0

    def split(self, name: str) -> Split:
        """Return the split with the given name: train, val or test."""
        splits = {"train": self.train, "val": self.val, "test": self.test}
        if name not in splits:
            raise unknown("split", name, splits)
        return splits[name]

    @property
    def mean_characters(self) -> float:
        """The mean number of what bits are counted per in a training example: its symbols, or their characters."""
        if self.train.widths is None:
            return self.mean_symbols
        return max(1.0, float(self.train.sizes(np.arange(min(len(self.train), MOST_COUNTED))).mean()))

    @property
    def mean_symbols(self) -> float:
        """The mean number of symbols of a training example, without those after its end."""
        if not self.spec.ends:
            return float(np.prod(self.spec.event_shape))
        return max(1.0, float((np.asarray(self.train.symbols) < self.spec.num_classes).sum(axis=1).mean()))

    def name_examples(self, names: list[str]) -> None:
        """Say what the examples are called, those of train first, then those of val and test."""
        for split in (self.train, self.val, self.test):
            split.names, names = names[: len(split)], names[len(split) :]

    def require(self, *names: str) -> None:
        """Raise a ValueError if one of the named splits has no examples."""
        for name in names:
            split = self.split(name)
            if len(split) == 0 and split.length is not None:
                raise ValueError(
                    f"the {name} split has {len(split.symbols)} symbols, shorter than one sequence of {split.length}; "
                    "use more text, another `split` or a smaller `length`"
                )
            if len(split) == 0:
                raise ValueError(f"the {name} split has no examples; use another `split`")


def split_sizes(split: str, total: int, what: str) -> tuple[int, int, int]:
    """Return the sizes of train, val and test from a text TRAIN,VAL,TEST of fractions or counts.

    >>> split_sizes("0.9,0.05,0.05", 1000, "symbols")
    (900, 50, 50)
    >>> split_sizes("600,300,100", 1000, "symbols")
    (600, 300, 100)
    """
    expected = f"expected a split TRAIN,VAL,TEST as fractions that sum to 1 or as counts, got {split!r}"
    parts = split.split(",")
    try:
        numbers = [float(p) for p in parts]
        # 0,0,1 puts everything into test: these are fractions, not counts
        is_counts = all("." not in p and "e" not in p.lower() for p in parts) and sum(numbers) != 1
    except ValueError as error:
        raise ValueError(expected) from error
    if len(numbers) != 3 or min(numbers) < 0 or not all(np.isfinite(numbers)):
        raise ValueError(expected)
    if is_counts:
        train, val, test = (int(p) for p in parts)
        if train + val + test > total:
            raise ValueError(f"the split {split} needs {train + val + test} {what}, but the data have {total}")
        return train, val, test
    if abs(sum(numbers) - 1) > 1e-6:
        raise ValueError(f"{expected}, which sums to {sum(numbers):g}")
    train, val = round(total * numbers[0]), round(total * numbers[1])
    return train, val, total - train - val


def cut(
    symbols: np.ndarray,
    sizes: tuple[int, int, int],
    length: int | None,
    *,
    flips: bool = False,
    labels: np.ndarray | None = None,
) -> tuple[Split, Split, Split]:
    """Cut symbols into train, val and test of the given sizes, in this order; `flips` applies to train only."""
    parts = [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    given = [None if labels is None else labels[part] for part in parts]
    splits = [Split(symbols[part], length, labels=label) for part, label in zip(parts, given, strict=True)]
    splits[0].flips = flips
    return splits[0], splits[1], splits[2]
