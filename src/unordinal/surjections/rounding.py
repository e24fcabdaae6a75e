"""Rounding, the paper's baseline: v = onehot(x) + u (or x + u), u in (0, 1), generation by the floor."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal.flows.density import Density, StandardLogistic
from unordinal.numerics import sum_except_batch
from unordinal.surjections.surjection import Surjection


def dequantized(low: Tensor, s: Tensor, log_q: Tensor, *, is_uniform: bool) -> tuple[Tensor, Tensor]:
    """low + sigmoid(s), never rounded up to low + 1, and its log-density given that of s.

    Uniform noise is standard logistic s; its log q is 0, not a sum that should cancel.
    """
    highest = torch.nextafter(low + 1, torch.full_like(low, -math.inf))
    v = torch.minimum(low + torch.sigmoid(s), highest)
    if is_uniform:
        return v, torch.zeros_like(log_q)
    return v, log_q - sum_except_batch(F.logsigmoid(s) + F.logsigmoid(-s))


class OneHotRounding(Surjection):
    """Dequantisation of the one-hot: K numbers per class. A floor that is no one-hot means no class.

    `noise` is over the logit of u: standard logistic for uniform dequantisation (the default), learned for variational.
    """

    def __init__(self, num_classes: int, noise: Density | None = None):
        super().__init__(num_classes, num_classes, has_invalid=True)
        self.noise = StandardLogistic((num_classes,)) if noise is None else noise

    def lift(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        s, log_q = self.drawn(self.noise, x, context)
        onehot = F.one_hot(x, self.num_classes).to(s.dtype)
        return dequantized(onehot, s, log_q, is_uniform=isinstance(self.noise, StandardLogistic))

    def quantize(self, v: Tensor) -> Tensor:
        floor = v.floor()
        is_onehot = ((floor == 0) | (floor == 1)).all(dim=-1) & (floor.sum(dim=-1) == 1)
        return torch.where(is_onehot, floor.argmax(dim=-1), self.num_classes)


class OrdinalRounding(Surjection):
    """x = floor(v), one number per class (tab:surjective): for data whose classes have an order."""

    def __init__(self, num_classes: int, noise: Density | None = None):
        super().__init__(num_classes, 1, has_invalid=True)
        self.noise = StandardLogistic((1,)) if noise is None else noise

    def lift(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor]:
        s, log_q = self.drawn(self.noise, x, context)
        low = x.unsqueeze(-1).to(s.dtype)
        return dequantized(low, s, log_q, is_uniform=isinstance(self.noise, StandardLogistic))

    def quantize(self, v: Tensor) -> Tensor:
        floor = v.squeeze(-1).floor()
        is_class = (floor >= 0) & (floor < self.num_classes)
        return torch.where(is_class, floor, self.num_classes).long()
