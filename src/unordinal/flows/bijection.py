"""The interface of every bijection, and two ways to build new bijections from existing ones."""

from abc import ABC, abstractmethod
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Bijection(nn.Module, ABC):
    """The interface of an invertible transformation of tensors of shape (B, *D, C).

    `forward` goes from data to noise and `inverse` from noise to data. Each direction returns its result together with
    the log-determinant of its own Jacobian, one number per example. Both directions accept a condition `cond` of shape
    (B, *D, H); a bijection that needs none ignores it.

    >>> import math
    >>> class Doubling(Bijection):
    ...     def forward(self, v, cond=None):
    ...         return 2 * v, torch.full((len(v),), v[0].numel() * math.log(2))
    ...     def inverse(self, z, cond=None):
    ...         return z / 2, torch.full((len(z),), -z[0].numel() * math.log(2))
    >>> z, log_det = Doubling()(torch.ones(1, 4, 3))
    >>> Doubling().inverse(z)[0].equal(torch.ones(1, 4, 3))
    True
    """

    @abstractmethod
    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Transform data to noise.

        Args:
            v: data, of shape (B, *D, C).
            cond: condition, of shape (B, *D, H).

        Returns:
            The noise z, of shape (B, *D, C), and log |det dz/dv|, of shape (B,).
        """

    @abstractmethod
    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Transform noise to data.

        Args:
            z: noise, of shape (B, *D, C).
            cond: condition, of shape (B, *D, H).

        Returns:
            The data v, of shape (B, *D, C), and log |det dv/dz|, of shape (B,).
        """


class Chain(Bijection):
    """The composition of several bijections, which is a bijection itself.

    `forward` applies them from first to last, and `inverse` applies their inverses from last to first. All of them
    receive the same condition.

    Args:
        bijections: the bijections, in the order in which `forward` applies them.

    >>> from unordinal.flows.linear import InvertibleLinear
    >>> from unordinal.flows.reshape import Reversal
    >>> chain = Chain([InvertibleLinear(3), Reversal(axis=-1)])
    >>> v = torch.randn(2, 5, 3)
    >>> z, log_det = chain(v)
    >>> torch.allclose(chain.inverse(z)[0], v, atol=1e-5)
    True
    """

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
    """A bijection with its two directions swapped.

    It is useful where the direction that is fast to compute should be the one from noise to data.

    Args:
        bijection: the bijection whose directions are swapped.

    >>> from unordinal.flows.linear import InvertibleLinear
    >>> linear, v = InvertibleLinear(3), torch.randn(2, 5, 3)
    >>> Inverse(linear)(v)[0].equal(linear.inverse(v)[0])
    True
    """

    def __init__(self, bijection: Bijection):
        super().__init__()
        self.bijection = bijection

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.bijection.inverse(v, cond)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.bijection(z, cond)
        return out


def num_positions(v: Tensor) -> int:
    """Return the number of positions in one example, not counting channels: prod(D) for v of shape (B, *D, C)."""
    return torch.Size(v.shape[1:-1]).numel()
