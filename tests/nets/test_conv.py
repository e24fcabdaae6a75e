"""Convolutions with channels last, compared with those of torch."""

import pytest
import torch
import torch.nn.functional as F

from unordinal.nets.conv import MapConv


@pytest.mark.parametrize("stride", [1, 2])
def test_channels_last_convolution_equals_the_plain_one(stride: int) -> None:
    conv = MapConv(3, 4, stride=stride).double()
    h = torch.randn(2, 5, 7, 3, dtype=torch.float64)
    expected = F.conv2d(h.permute(0, 3, 1, 2).contiguous(), conv.weight, conv.bias, stride=stride, padding=1)
    torch.testing.assert_close(conv(h), expected.permute(0, 2, 3, 1))
