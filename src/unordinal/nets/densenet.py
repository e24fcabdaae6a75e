"""Densely connected convolutions over maps (Huang et al. 2017): every layer reads all layers before it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.conv import MapConv
from unordinal.nets.linear import zero_linear
from unordinal.nets.sharp import SharpFeatures


class DenseNet(nn.Module):
    """A densely connected network of 3x3 convolutions over maps, followed by a 1x1 convolution.

    Every convolution reads the input and the outputs of all convolutions before it. The output starts at zero.

    Args:
        in_channels: the number of input channels.
        out_channels: the number of output channels.
        width: the number of channels of all convolutions together; at least `depth`.
        depth: the number of convolutions, at least 1.
        num_sharp: the number of leading input channels that are continuous codes of classes; the network reads their
            `SharpFeatures` too.

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
        """Compute the output for every pixel: (B, H, W, in_channels) -> (B, H, W, out_channels)."""
        if self.look is not None:
            h = torch.cat([self.look(h[..., : self.num_sharp]), h[..., self.num_sharp :]], dim=-1)
        for conv in self.convs:
            h = torch.cat([h, F.silu(conv(h))], dim=-1)
        return self.out(h)


class MapContext(nn.Module):
    """Features of the class of each pixel and of its surroundings: (B, H, W) classes -> (B, H, W, width)."""

    def __init__(self, num_classes: int, *, width: int, depth: int):
        super().__init__()
        self.embed = nn.Embedding(num_classes, width)
        self.net = DenseNet(width, width, width=width, depth=depth)

    def forward(self, x: Tensor) -> Tensor:
        h = self.embed(x)
        return h + self.net(h)
