"""Coupling layers: some channels determine how the other channels are transformed."""

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.flows.elementwise import ElementwiseTransform
from unordinal.numerics import sum_except_batch


class Coupling(Bijection):
    """Transform some channels elementwise, with parameters that a network computes from the other channels.

    The first `num_fixed` channels pass unchanged. The network reads them (and the condition, if there is one) and
    returns the parameters of the elementwise transformation of the remaining channels (Dinh et al. 2017).

    Args:
        net: a network from (B, *D, num_fixed + H) to (B, *D, (C - num_fixed) P), where H is the number of channels of
            the condition (0 without one) and P is `family.num_parameters`.
        family: the elementwise transformation.
        num_channels: the number of channels C, at least 2.
        num_fixed: the number of channels that pass unchanged. Default: half of them, rounded up.

    >>> from unordinal.flows.elementwise import Affine
    >>> layer = Coupling(nn.Linear(2, 2 * Affine.num_parameters), Affine(), num_channels=4)
    >>> v = torch.randn(3, 5, 4)
    >>> z, log_det = layer(v)
    >>> torch.allclose(layer.inverse(z)[0], v, atol=1e-5)
    True
    """

    def __init__(
        self, net: nn.Module, family: ElementwiseTransform, *, num_channels: int, num_fixed: int | None = None
    ):
        super().__init__()
        num_fixed = split_of(num_channels) if num_fixed is None else num_fixed
        if not 0 < num_fixed < num_channels:
            raise ValueError(f"num_fixed must be between 1 and {num_channels - 1}, got {num_fixed}")
        self.net, self.transform = net, family
        self.num_fixed, self.num_moved = num_fixed, num_channels - num_fixed
        self.start = nn.Parameter(family.start().repeat(self.num_moved, 1))  # (C_moved, P)

    def split(self, v: Tensor, cond: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return the fixed channels, the moved channels, and the parameters that transform the moved ones."""
        fixed, moved = v.split([self.num_fixed, self.num_moved], dim=-1)
        out = self.net(fixed if cond is None else torch.cat([fixed, cond], dim=-1))
        return fixed, moved, out.unflatten(-1, (self.num_moved, -1)) + self.start

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        fixed, moved, parameters = self.split(v, cond)
        moved, log_slope = self.transform.forward(moved, parameters)
        return torch.cat([fixed, moved], dim=-1), sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        fixed, moved, parameters = self.split(z, cond)
        moved, log_slope = self.transform.inverse(moved, parameters)
        return torch.cat([fixed, moved], dim=-1), sum_except_batch(log_slope)


def split_of(num_channels: int) -> int:
    """Return how many channels a coupling leaves unchanged by default: half of them, rounded up."""
    if num_channels < 2:
        raise ValueError(
            f"a coupling flow needs at least 2 channels, got {num_channels}; "
            "use an autoregressive flow, or a surjection with more channels"
        )
    return (num_channels + 1) // 2
