"""Bijections that only move numbers about."""

import torch
from torch import Tensor

from unordinal.flows.bijection import Bijection


class Permutation(Bijection):
    """Channels in another order, fixed."""

    order: Tensor
    back: Tensor

    def __init__(self, order: Tensor):
        super().__init__()
        if sorted(order.tolist()) != list(range(len(order))):
            raise ValueError(f"expected each of 0..{len(order) - 1} once, got {order.tolist()}")
        self.register_buffer("order", order)
        self.register_buffer("back", order.argsort())

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return v[..., self.order], v.new_zeros(len(v))

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return z[..., self.back], z.new_zeros(len(z))


class Reversal(Bijection):
    """One axis backwards: 1 is time (or the rows of a map), -1 the channels. A condition keeps its order."""

    def __init__(self, axis: int = 1):
        super().__init__()
        if axis == 0:
            raise ValueError("axis 0 is the batch; reverse 1 (time) or -1 (channels)")
        self.axis = axis

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return torch.flip(v, (self.axis,)), v.new_zeros(len(v))

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.forward(z, cond)
        return out
