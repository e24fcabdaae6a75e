"""Convolutions over maps whose channels come last."""

import torch
from torch import Tensor, nn


class MapConv(nn.Conv2d):
    """A 2-d convolution (B, H, W, in) -> (B, H', W', out); the turns of the axes are views, nothing is copied.

    Padding keeps the size where `stride` is 1, and gives the half rounded up where it is 2.
    """

    is_inner = True  # from features to features, like InnerLinear

    def __init__(self, in_channels: int, out_channels: int, *, kernel: int = 3, stride: int = 1):
        super().__init__(in_channels, out_channels, kernel, stride=stride, padding=kernel // 2)
        # weights in the order of the data: otherwise a CPU turns them for every call, a third of the time of one map
        self.weight = nn.Parameter(self.weight.detach().contiguous(memory_format=torch.channels_last))

    def forward(self, h: Tensor) -> Tensor:
        return super().forward(h.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
