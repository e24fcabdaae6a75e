"""The classes of each position: the same number everywhere, or a number of its own for each column.

If all positions have K classes, logits have shape (B, *D, K). Columns with numbers of classes of their own have ragged
logits of shape (B, sum of K), so that memory grows with the sum of the columns' classes and not with the number of
columns times the largest. Columns with equally many classes are neighbours there, hence few operations serve them all.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from unordinal.numerics import Rng, draw_categorical

Numbers = Sequence[tuple[float, ...] | None]


class Classes:
    """The number of classes of every position, or of each column, and the functions that need to know it.

    Args:
        num: the number of classes K, or one number for each column.
        numbers: for each column the numbers that its first classes stand for, or None if they have no order.

    Attributes:
        columns: the number of classes of each column; empty if all positions have equally many.
        most: the largest number of classes.
        offsets: where the logits of each column begin; empty if all positions have equally many classes.

    >>> classes = Classes((2, 3, 2))
    >>> classes.most, classes.offsets, classes.sizes(torch.ones(1)).tolist()
    (3, (0, 4, 2), [2.0, 3.0, 2.0])
    >>> classes.log_prob(torch.zeros(1, 7), torch.tensor([[1, 2, 0]])).exp()
    tensor([[0.5000, 0.3333, 0.5000]])
    """

    def __init__(self, num: "int | Sequence[int] | Classes", numbers: "Numbers" = ()):
        given: int | Sequence[int] = (num.columns or num.most) if isinstance(num, Classes) else num
        self.numbers: Numbers = num.numbers if isinstance(num, Classes) else numbers
        self.columns: tuple[int, ...] = () if isinstance(given, int) else tuple(int(k) for k in given)
        self.most: int = given if isinstance(given, int) else max(self.columns, default=0)
        if self.most < 2 or min(self.columns, default=1) < 1:
            raise ValueError(f"a model needs at least 2 classes, and each column at least 1; got {num}")
        self.groups: list[tuple[int, list[int], int]] = []  # number of classes, columns that have it, where they begin
        starts, begin = dict[int, int](), 0
        for k in sorted(set(self.columns)):
            members = [column for column, size in enumerate(self.columns) if size == k]
            self.groups.append((k, members, begin))
            starts |= {column: begin + rank * k for rank, column in enumerate(members)}
            begin += k * len(members)
        self.offsets = tuple(starts[column] for column in range(len(self.columns)))
        order = [column for _, members, _ in self.groups for column in members]
        self.place_in_groups = [order.index(column) for column in range(len(order))]

    def reversed(self) -> "Classes":
        """Return the classes of the positions in reverse."""
        return Classes(self.columns[::-1] or self.most, self.numbers[::-1])

    def sizes(self, like: Tensor) -> Any:
        """Return the number of classes of the positions: an int, or (D,) with the type and device of `like`."""
        return torch.tensor(self.columns, dtype=like.dtype, device=like.device) if self.columns else self.most

    def parts(self, logits: Tensor, *values: Tensor) -> list[tuple[Tensor, ...]]:
        """Return the logits of groups of columns, (B, D', K) each, and the parts of `values` that belong to them.

        `values` have the shape (B, D), or broadcast to it.
        """
        found = []
        for k, members, begin in self.groups:
            part = logits[..., begin : begin + k * len(members)].unflatten(-1, (len(members), k))
            found.append((part, *(v if v.shape[1] == 1 else v[:, members] for v in values)))
        return found

    def reduce(self, f: Callable[..., Any], logits: Tensor, *values: Tensor) -> Any:
        """Apply a function that reduces the classes of each position, f((B, *D, K), *(B, *D)): one or more (B, *D)."""
        if not self.columns:
            return f(logits, *values)
        results = [f(*part) for part in self.parts(logits, *values)]
        if isinstance(results[0], Tensor):
            return torch.cat(results, dim=1)[:, self.place_in_groups]
        return tuple(torch.cat(part, dim=1)[:, self.place_in_groups] for part in zip(*results, strict=True))

    def map(self, f: Callable[..., Tensor], logits: Tensor) -> Tensor:
        """Apply a function that keeps the shape of the logits to the classes of each position."""
        if not self.columns:
            return f(logits)
        return torch.cat([f(part).flatten(1) for (part,) in self.parts(logits)], dim=-1)

    def log_prob(self, logits: Tensor, x: Tensor) -> Tensor:
        """Return the log-probability of the class of each position: (B, *D)."""
        return self.reduce(lambda part, at: chosen(torch.log_softmax(part, dim=-1), at), logits, x)

    def draw(self, logits: Tensor, generator: Rng) -> Tensor:
        """Draw the class of every position: (B, *D)."""
        return self.reduce(lambda part: draw_categorical(part, generator), logits)

    def draw_at(self, logits: Tensor, where: Tensor, generator: Rng) -> Tensor:
        """Draw the classes of some positions, `where` (B, *D) is true: (J,)."""
        if not self.columns:
            return draw_categorical(logits[where], generator)
        return self.draw(logits, generator)[where]

    def uniform(self, shape: tuple[int, ...] | torch.Size, device: torch.device, generator: Rng) -> Tensor:
        """Draw classes uniformly, each among those of its position: (B, *D)."""
        if not self.columns:
            return torch.randint(self.most, shape, generator=generator, device=device)
        u = torch.rand(shape, generator=generator, device=device)
        sizes = self.sizes(u)
        return torch.minimum((u * sizes).long(), sizes.long() - 1)

    def uniform_at(self, where: Tensor, generator: Rng) -> Tensor:
        """Draw the classes of some positions uniformly, `where` (B, *D) is true: (J,)."""
        if not self.columns:
            return torch.randint(self.most, (int(where.sum()),), generator=generator, device=where.device)
        return self.uniform(where.shape, where.device, generator)[where]

    def add_at(self, logits: Tensor, x: Tensor, values: Tensor) -> Tensor:
        """Return the logits with `values` (B, *D) added to those of the class x (B, *D) of every position."""
        if not self.columns:
            return logits.scatter_add(-1, x.unsqueeze(-1), values.unsqueeze(-1))
        return logits.scatter_add(-1, x + torch.tensor(self.offsets, device=x.device), values)

    def at(self, logits: Tensor, column: int) -> Tensor:
        """Return the logits of one position of a sequence: (B, K)."""
        if not self.columns:
            return logits[:, column]
        return logits[:, self.offsets[column] : self.offsets[column] + self.columns[column]]


def chosen(values: Tensor, x: Tensor) -> Tensor:
    """Return the values (..., K) of the classes x (...): (...)."""
    return values.gather(-1, x.unsqueeze(-1)).squeeze(-1)
