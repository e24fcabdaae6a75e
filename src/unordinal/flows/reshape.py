"""Bijections that only rearrange values: reversals and squeezes. Their log-determinants are 0."""

import torch
from torch import Tensor

from unordinal.flows.bijection import Bijection


class Reversal(Bijection):
    """Reverse the order of the values along one axis.

    A condition is not reversed.

    Args:
        axis: 1 for the positions of a sequence (or the rows of a map), -1 for the channels.

    >>> Reversal()(torch.tensor([[[1.0], [2.0], [3.0]]]))[0].flatten().tolist()
    [3.0, 2.0, 1.0]
    """

    def __init__(self, axis: int = 1):
        super().__init__()
        if axis == 0:
            raise ValueError("axis 0 is the batch; reverse axis 1 (positions) or axis -1 (channels) instead")
        self.axis = axis

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return torch.flip(v, (self.axis,)), v.new_zeros(len(v))

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.forward(z, cond)
        return out


class Squeeze(Bijection):
    """Merge each block of 2 x 2 pixels into one pixel with four times as many channels.

    The shape changes from (B, H, W, C) to (B, H / 2, W / 2, 4 C); the pixels of a block are ordered row by row. For a
    sequence, each pair of positions is merged into one with twice as many channels. A condition is not squeezed.

    >>> z, log_det = Squeeze()(torch.zeros(2, 4, 6, 3))
    >>> z.shape
    torch.Size([2, 2, 3, 12])
    """

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sides = v.shape[1:-1]
        if any(side % 2 for side in sides):
            raise ValueError(f"a squeeze needs even sides, got {tuple(sides)}")
        num = len(sides)
        blocks = v.reshape(len(v), *(part for side in sides for part in (side // 2, 2)), v.shape[-1])
        outer, inner = range(1, 2 * num + 1, 2), range(2, 2 * num + 1, 2)
        z = blocks.permute(0, *outer, *inner, 2 * num + 1).flatten(num + 1)
        return z, v.new_zeros(len(v))

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        sides = z.shape[1:-1]
        num = len(sides)
        if z.shape[-1] % 2**num:
            raise ValueError(f"undoing a squeeze needs a multiple of {2**num} channels, got {z.shape[-1]}")
        blocks = z.reshape(len(z), *sides, *([2] * num), z.shape[-1] // 2**num)
        order = [axis for place in range(num) for axis in (1 + place, 1 + num + place)]
        v = blocks.permute(0, *order, 2 * num + 1)
        return v.reshape(len(z), *(2 * side for side in sides), -1), z.new_zeros(len(z))
