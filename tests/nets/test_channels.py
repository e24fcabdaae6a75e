"""The channel network: each channel depends only on the channels before it, in one pass and channel by channel."""

import torch

from unordinal.nets.channels import ChannelNet


def test_channels_see_only_the_channels_before() -> None:
    torch.manual_seed(0)
    net = ChannelNet(5, 4, 2, width=6).double()
    net.out.data.normal_()
    h, v = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    out = net(h, v)  # (B, L, C, P)
    for channel in range(4):
        (gradient,) = torch.autograd.grad(out[:, :, channel].sum(), v, retain_graph=True)
        assert (gradient[0, 0] != 0).tolist() == [other < channel for other in range(4)]
    prepared = net.prepare(h[:, 1])
    for channel in range(4):
        unknown = torch.where(torch.arange(4) < channel, v[:, 1], 99.0)  # later channels are not read
        torch.testing.assert_close(net.step(prepared, unknown, channel), out[:, 1, channel])
