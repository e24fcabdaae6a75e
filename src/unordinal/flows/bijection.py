"""The interface of every bijection, and the two ways to make new ones of old."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Bijection(nn.Module, ABC):
    """An invertible map of (B, *D, C), from data to noise; `cond` (B, *D, H) is accepted everywhere.

    Both directions return the log-determinant of the Jacobian of the direction taken, (B,).
    """

    @abstractmethod
    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Data to noise: (z, log |det dz/dv|)."""

    @abstractmethod
    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Noise to data: (v, log |det dv/dz|)."""


class Chain(Bijection):
    """Bijections one after another; `forward` goes from first to last."""

    def __init__(self, bijections: Iterable[Bijection]):
        super().__init__()
        self.bijections = nn.ModuleList(bijections)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = v.new_zeros(len(v))
        for bijection in self.bijections:
            v, log_det = bijection(v, cond)
            total = total + log_det
        return v, total

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        total = z.new_zeros(len(z))
        for bijection in reversed(self.bijections):
            assert isinstance(bijection, Bijection)
            z, log_det = bijection.inverse(z, cond)
            total = total + log_det
        return z, total


class Inverse(Bijection):
    """A bijection with its directions swapped: what runs from noise to data while training is never iterated."""

    def __init__(self, bijection: Bijection):
        super().__init__()
        self.bijection = bijection

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.bijection.inverse(v, cond)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.bijection(z, cond)
        return out


def num_positions(v: Tensor) -> int:
    """Positions of one example, channels not counted: (B, *D, C) -> prod(D)."""
    return torch.Size(v.shape[1:-1]).numel()
