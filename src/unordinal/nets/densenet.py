"""Densely connected convolutions over maps (Huang et al. 2017): every layer sees all before it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.conv import MapConv
from unordinal.nets.linear import zero_linear
from unordinal.nets.sharp import SharpFeatures


class DenseNet(nn.Module):
    """`depth` 3x3 convolutions that add `width` channels together, then a 1x1: (B, H, W, in) -> (B, H, W, out).

    The output starts at zero. With `num_sharp` the first so many channels of the input are lifted numbers and are shown
    with their `SharpFeatures`.

    >>> DenseNet(4, 6, width=32, depth=2)(torch.zeros(2, 8, 8, 4)).shape
    torch.Size([2, 8, 8, 6])
    """

    def __init__(self, in_channels: int, out_channels: int, *, width: int, depth: int, num_sharp: int = 0):
        super().__init__()
        if depth < 1 or width < depth:
            raise ValueError(f"a DenseNet needs depth >= 1 and width >= depth, got depth {depth} and width {width}")
        self.num_sharp = num_sharp
        self.look = SharpFeatures(num_sharp) if num_sharp else None
        channels = in_channels + num_sharp
        growth = [width // depth + (layer < width % depth) for layer in range(depth)]
        self.convs = nn.ModuleList()
        for added in growth:
            self.convs.append(MapConv(channels, added))
            channels += added
        self.out = zero_linear(channels, out_channels)

    def forward(self, h: Tensor) -> Tensor:
        if self.look is not None:
            h = torch.cat([self.look(h[..., : self.num_sharp]), h[..., self.num_sharp :]], dim=-1)
        for conv in self.convs:
            h = torch.cat([h, F.silu(conv(h))], dim=-1)
        return self.out(h)


class MapContext(nn.Module):
    """Features of each pixel's class and its surroundings: (B, H, W) classes -> (B, H, W, width)."""

    def __init__(self, num_classes: int, *, width: int, depth: int):
        super().__init__()
        self.embed = nn.Embedding(num_classes, width)
        self.net = DenseNet(width, width, width=width, depth=depth)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        return h + self.net(h)
