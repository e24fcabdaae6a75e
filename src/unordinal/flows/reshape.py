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


class Squeeze(Bijection):
    """Blocks of 2 x 2 pixels become one with four times the channels (of 2 positions, twice, for a sequence).

    (B, H, W, C) -> (B, H / 2, W / 2, 4 C), the block's pixels row by row. A condition is not squeezed with it.
    """

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        sides = v.shape[1:-1]
        if any(side % 2 for side in sides):
            raise ValueError(f"only even sides can be halved, got {tuple(sides)}")
        num = len(sides)
        blocks = v.reshape(len(v), *(part for side in sides for part in (side // 2, 2)), v.shape[-1])
        outer, inner = range(1, 2 * num + 1, 2), range(2, 2 * num + 1, 2)
        z = blocks.permute(0, *outer, *inner, 2 * num + 1).flatten(num + 1)
        return z, v.new_zeros(len(v))

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        sides = z.shape[1:-1]
        num = len(sides)
        if z.shape[-1] % 2**num:
            raise ValueError(f"{z.shape[-1]} channels cannot be shared by {2**num} pixels")
        blocks = z.reshape(len(z), *sides, *([2] * num), z.shape[-1] // 2**num)
        order = [axis for place in range(num) for axis in (1 + place, 1 + num + place)]
        v = blocks.permute(0, *order, 2 * num + 1)
        return v.reshape(len(z), *(2 * side for side in sides), -1), z.new_zeros(len(z))
