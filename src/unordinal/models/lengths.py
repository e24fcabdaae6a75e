"""How long examples are: P(n | label), from counts of the training data."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from unordinal.numerics import Rng, draw_categorical, tempered


class Lengths(nn.Module):
    """The distribution of the lengths 0, ..., L given the first label, (count + 1) / (total + L + 1).

    Args:
        counts: how often each length occurs: one row, or one for each class of the first label and a last one for all
            examples, which serves a missing label.

    >>> Lengths([[3, 0, 1]])(torch.tensor([0, 2])).exp().tolist()
    [0.5714285969734192, 0.2857142984867096]
    """

    log_probs: Tensor

    def __init__(self, counts: Sequence[Sequence[int]]):
        super().__init__()
        smoothed = torch.tensor(counts, dtype=torch.float64) + 1
        self.register_buffer("log_probs", (smoothed / smoothed.sum(dim=1, keepdim=True)).log().float())

    def forward(self, num_symbols: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of lengths (B,) given labels (B, J): (B,) nats."""
        return self.log_probs[self.rows(len(num_symbols), cond), num_symbols]

    def rows(self, num: int, cond: Tensor | None) -> Tensor:
        """Return which row of `log_probs` serves each example: (B,)."""
        if cond is None or len(self.log_probs) == 1:
            return torch.full((num,), len(self.log_probs) - 1, device=self.log_probs.device)
        return cond[:, 0].clamp(max=len(self.log_probs) - 1)

    def draw(self, num: int, cond: Tensor | None, generator: Rng, guidance: float = 1.0) -> Tensor:
        """Draw how long each sample is, from P(n)^(1-g) P(n | label)^g with guidance g: (N,)."""
        own = self.log_probs[self.rows(num, cond)]
        return draw_categorical(tempered(self.log_probs[-1].expand_as(own), own, guidance), generator)
