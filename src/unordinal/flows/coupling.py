"""Coupling: some channels set the map of the others."""

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.flows.elementwise import ElementwiseTransform
from unordinal.numerics import sum_except_batch


class Coupling(Bijection):
    """The first `num_fixed` channels (and `cond`) pass through a network that maps the other ones elementwise.

    `net` takes (B, *D, num_fixed + H) to (B, *D, (C - num_fixed) P), P the map's number of parameters.
    """

    def __init__(
        self, net: nn.Module, family: ElementwiseTransform, *, num_channels: int, num_fixed: int | None = None
    ):
        super().__init__()
        num_fixed = split_of(num_channels) if num_fixed is None else num_fixed
        if not 0 < num_fixed < num_channels:
            raise ValueError(f"a coupling needs channels on both sides, got {num_fixed} of {num_channels} fixed")
        self.net, self.transform = net, family
        self.num_fixed, self.num_moved = num_fixed, num_channels - num_fixed
        self.start = nn.Parameter(family.start().repeat(self.num_moved, 1))  # (C_moved, P)

    def split(self, v: Tensor, cond: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Fixed and moved channels, and the parameters of the latter's map."""
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
    """How many channels a coupling fixes unless told: half of them, rounded up."""
    if num_channels < 2:
        raise ValueError(
            f"a coupling flow needs at least 2 channels, got {num_channels}; "
            "use an autoregressive flow or a surjection with more"
        )
    return (num_channels + 1) // 2
