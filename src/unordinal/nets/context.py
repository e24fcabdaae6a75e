"""Networks that compute the context of a probabilistic inverse from the classes x, and a small MLP."""

import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.linear import Linear, zero_linear
from unordinal.nets.transformer import DepthwiseConv


class ClassContext(nn.Module):
    """Features of the class of each position and, with blocks, of its neighbours: (B, L) -> (B, L, width).

    Args:
        num_classes: the number of classes K.
        width: the number of features.
        num_blocks: the number of blocks; each one sees two more neighbours on either side.
    """

    KERNEL = 5  # kernel size of the convolutions over neighbours

    def __init__(self, num_classes: int, *, width: int, num_blocks: int = 0):
        super().__init__()
        if width < 1 or num_blocks < 0:
            raise ValueError(f"the context needs width >= 1 and num_blocks >= 0, got {width} and {num_blocks}")
        self.out_channels = width
        self.embed = nn.Embedding(num_classes, width)
        self.convs = nn.ModuleList(DepthwiseConv(width, self.KERNEL) for _ in range(num_blocks))
        self.mlps = nn.ModuleList(Mlp(width, width, width=2 * width) for _ in range(num_blocks))

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        for conv, mlp in zip(self.convs, self.mlps, strict=True):
            h = h + mlp(conv(F.layer_norm(h, h.shape[-1:])))
        return h


class Mlp(nn.Module):
    """A network with one hidden layer, applied at each position: (..., in) -> (..., out). Its output starts at zero."""

    def __init__(self, in_channels: int, out_channels: int, *, width: int):
        super().__init__()
        self.hidden = Linear(in_channels, width)
        self.out = zero_linear(width, out_channels)

    def forward(self, h: Tensor) -> Tensor:
        return self.out(F.silu(self.hidden(h)))
