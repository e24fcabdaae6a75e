"""Convolutions over maps whose channels come last."""

from torch import Tensor, nn


class MapConv(nn.Conv2d):
    """A 2-d convolution (B, H, W, in) -> (B, H', W', out); the turns of the axes are views, nothing is copied.

    Padding keeps the size where `stride` is 1, and gives the half rounded up where it is 2.
    """

    def __init__(self, in_channels: int, out_channels: int, *, kernel: int = 3, stride: int = 1):
        super().__init__(in_channels, out_channels, kernel, stride=stride, padding=kernel // 2)

    def forward(self, h: Tensor) -> Tensor:
        return super().forward(h.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
