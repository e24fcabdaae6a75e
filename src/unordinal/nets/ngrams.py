"""Embeddings of the last few classes together: bits bought with memory instead of arithmetic."""

import torch
from torch import Tensor, nn

from unordinal.nets.linear import Linear

# A row is chosen by a polynomial of the classes modulo a Mersenne prime, which spreads contexts evenly.
PRIME = 2**31 - 1
BASE = 48_271


class NgramEmbedding(nn.Module):
    """Features of the last 2, 3, ... classes before each position: (B, L + longest - 1) -> (B, L, width).

    Each order n has a table. A context of n classes has a row of its own where the table has room for all of them, and
    otherwise one chosen by a hash, which it shares with others. Tables and output start at zero, so that the network
    starts as it would without them.

    Args:
        num_classes: how many classes the contexts are made of, a start sign included.
        width: channels of the output.
        orders: the lengths n of the contexts, each at least 1.
        rows: the most rows of a table.
        row_width: channels of a row.
        classes: how many classes the tables were made for, if fewer, the start sign included; later classes count as
            the start sign.

    >>> NgramEmbedding(28, 16, orders=(2, 3), rows=1000, row_width=4)(torch.zeros(2, 7 + 2, dtype=torch.long)).shape
    torch.Size([2, 7, 16])
    """

    def __init__(
        self,
        num_classes: int,
        width: int,
        *,
        orders: tuple[int, ...],
        rows: int,
        row_width: int,
        classes: int | None = None,
    ):
        super().__init__()
        num_classes = classes or num_classes
        if not orders or min(orders) < 1 or len(set(orders)) < len(orders) or rows < 1 or row_width < 1:
            raise ValueError(
                f"n-grams need different orders of at least 1, and rows and row_width of at least 1; "
                f"got orders {orders}, rows {rows}, row_width {row_width}"
            )
        self.num_classes, self.orders, self.longest = num_classes, orders, max(orders)
        self.tables = nn.ModuleList(nn.Embedding(min(rows, num_classes**n), row_width) for n in orders)
        for table in self.tables:
            nn.init.zeros_(table.get_parameter("weight"))
        self.merge = Linear(len(orders) * row_width, width, bias=False)

    @property
    def sparse_tables(self) -> list[nn.Embedding]:
        """The tables, of which a batch reads few rows; they are trained by rows, and shared instead of averaged."""
        return [table for table in self.tables if isinstance(table, nn.Embedding)]

    def forward(self, before: Tensor) -> Tensor:
        """`before` has the classes before each position, and `longest - 1` more in front of them."""
        rows = [table(self.row_of(before, n)) for n, table in zip(self.orders, self.tables, strict=True)]
        return self.merge(torch.cat(rows, dim=-1))

    def row_of(self, before: Tensor, order: int) -> Tensor:
        """The row of each position's context: (B, L + longest - 1) -> (B, L)."""
        length, before = before.shape[1] - self.longest + 1, before.clamp(max=self.num_classes - 1)
        num_rows = self.tables[self.orders.index(order)].get_parameter("weight").shape[0]
        context = [before[:, self.longest - 1 - back :][:, :length] for back in range(order)]
        return rows_of(context, self.num_classes, num_rows)


def rows_of(context: list[Tensor], num_classes: int, num_rows: int) -> Tensor:
    """The row of a table for each context, given as tensors of classes, each of shape (B, L): (B, L)."""
    is_whole = num_classes ** len(context) <= num_rows
    index = torch.zeros_like(context[0])
    for classes in context:
        index = index * num_classes + classes if is_whole else (index * BASE + classes + 1) % PRIME
    return index if is_whole else (index * BASE % PRIME) % num_rows
