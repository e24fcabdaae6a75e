"""A small network that computes parameters for each channel from the features of a position and the channels before."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.linear import Linear
from unordinal.nets.sharp import SharpFeatures


class ChannelNet(nn.Module):
    """Parameters for every channel, computed from the features of its position and from the channels before it.

    Each channel has its own network with one hidden layer. Calling the module computes all channels at once; `prepare`
    and `step` compute one channel after another.

    Args:
        in_channels: the number of features W of a position.
        num_channels: the number of channels C.
        out_channels: the number of parameters P of each channel.
        width: the number of hidden units per channel.

    >>> ChannelNet(8, 3, 2, width=4)(torch.zeros(2, 5, 8), torch.zeros(2, 5, 3)).shape
    torch.Size([2, 5, 3, 2])
    """

    is_before: Tensor

    def __init__(self, in_channels: int, num_channels: int, out_channels: int, *, width: int):
        super().__init__()
        if width < 1:
            raise ValueError(f"the channel network needs width >= 1, got {width}")
        self.num_channels, self.width = num_channels, width
        self.features = Linear(in_channels, num_channels * width)
        self.look = SharpFeatures(num_channels)
        # axes: input feature, channel, hidden unit
        self.before = nn.Parameter(torch.randn(2 * num_channels, num_channels, width) / num_channels**0.5)
        order = torch.arange(num_channels)
        is_before = order.repeat(2).unsqueeze(1) < order  # (2 C, C); every channel has two features
        self.register_buffer("is_before", is_before.unsqueeze(-1), persistent=False)
        self.out = nn.Parameter(torch.zeros(num_channels, width, out_channels))

    def forward(self, h: Tensor, v: Tensor) -> Tensor:
        """Compute the parameters of all channels from features h (B, *D, W) and v (B, *D, C): (B, *D, C, P)."""
        weight = (self.before * self.is_before).flatten(1)  # (2 C, C width)
        hidden = self.features(h) + self.look(v) @ weight  # (B, L, C width)
        hidden = F.relu(hidden).square().unflatten(-1, (self.num_channels, self.width))
        return torch.einsum("...cm,cmp->...cp", hidden, self.out)

    def prepare(self, h: Tensor) -> Tensor:
        """Compute the part of the hidden units that depends on the features only: (..., W) -> (..., C, width)."""
        return self.features(h).unflatten(-1, (self.num_channels, self.width))

    def step(self, prepared: Tensor, v: Tensor, channel: int) -> Tensor:
        """Compute the parameters (..., P) of one channel; of v (..., C), only the channels before it are read."""
        hidden = prepared[..., channel, :] + self.look(v) @ (self.before[:, channel] * self.is_before[:, channel])
        return F.relu(hidden).square() @ self.out[channel]
