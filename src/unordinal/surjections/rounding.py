"""Dequantisation, the paper's baseline: v = onehot(x) + u or v = x + u with u in (0, 1), rounded down to get x."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal.flows.density import Density, StandardLogistic
from unordinal.numerics import Rng, one_hot, sum_except_batch
from unordinal.surjections.surjection import Surjection


def dequantize(low: Tensor, s: Tensor, log_q: Tensor, *, is_uniform: bool) -> tuple[Tensor, Tensor]:
    """Return v = low + sigmoid(s), always below low + 1, and its log-density.

    Args:
        low: the integers, of shape (B, *D, C).
        s: the logit of the noise, of shape (B, *D, C).
        log_q: the log-density of s, of shape (B,).
        is_uniform: whether s is standard logistic, so that the noise is uniform and its log-density exactly 0.
    """
    highest = torch.nextafter(low + 1, torch.full_like(low, -math.inf))
    v = torch.minimum(low + torch.sigmoid(s), highest)
    if is_uniform:
        return v, torch.zeros_like(log_q)
    return v, log_q - sum_except_batch(F.logsigmoid(s) + F.logsigmoid(-s))


class OneHotRounding(Surjection):
    """Dequantisation of one-hot vectors: v = onehot(x) + u with noise u in (0, 1).

    Rounding v down gives the one-hot vector of x; a v for which it is not one-hot represents no class.

    Args:
        num_classes: the number of classes K, which is also the number of channels of v.
        noise: the density of the logit of u, which may read the context as its condition; learned noise makes the
            dequantisation variational. Default: standard logistic, so that u is uniform.

    >>> surjection, x = OneHotRounding(5), torch.randint(5, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> v.shape, surjection.quantize(v).equal(x)
    (torch.Size([2, 8, 5]), True)
    """

    def __init__(self, num_classes: int, noise: Density | None = None):
        super().__init__(num_classes, num_classes, has_invalid=True)
        self.noise = StandardLogistic((num_classes,)) if noise is None else noise

    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        s, log_q = self.draw_noise(self.noise, x, context, generator)
        onehot = one_hot(x, self.num_classes, s.dtype)
        return dequantize(onehot, s, log_q, is_uniform=isinstance(self.noise, StandardLogistic))

    def quantize(self, v: Tensor) -> Tensor:
        floor = v.floor()
        is_onehot = ((floor == 0) | (floor == 1)).all(dim=-1) & (floor.sum(dim=-1) == 1)
        return torch.where(is_onehot, floor.argmax(dim=-1), self.num_classes)


class OrdinalRounding(Surjection):
    """Dequantisation of ordered classes: v = x + u with noise u in (0, 1), and x = floor(v) (tab:surjective).

    It suits data whose classes have an order. A v below 0, or of K or more, represents no class.

    Args:
        num_classes: the number of classes K; v has one channel.
        noise: the density of the logit of u, which may read the context as its condition; learned noise makes the
            dequantisation variational. Default: standard logistic, so that u is uniform.

    >>> surjection, x = OrdinalRounding(5), torch.randint(5, (2, 8))
    >>> v, log_q = surjection.lift(x)
    >>> v.shape, surjection.quantize(v).equal(x)
    (torch.Size([2, 8, 1]), True)
    """

    def __init__(self, num_classes: int, noise: Density | None = None):
        super().__init__(num_classes, 1, has_invalid=True)
        self.noise = StandardLogistic((1,)) if noise is None else noise

    def lift(self, x: Tensor, context: Tensor | None = None, *, generator: Rng = None) -> tuple[Tensor, Tensor]:
        s, log_q = self.draw_noise(self.noise, x, context, generator)
        low = x.unsqueeze(-1).to(s.dtype)
        return dequantize(low, s, log_q, is_uniform=isinstance(self.noise, StandardLogistic))

    def quantize(self, v: Tensor) -> Tensor:
        floor = v.squeeze(-1).floor()
        is_class = (floor >= 0) & (floor < self.num_classes)
        return torch.where(is_class, floor, self.num_classes).long()
