"""The small network inside a position: each channel's parameters from the features and the channels before it."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.nets.sharp import SharpFeatures


class ChannelNet(nn.Module):
    """One hidden layer per channel, of the position's features and of the channels before: -> (B, L, C, P).

    Every channel has weights of its own. In one pass for all channels, or channel by channel with `prepare` and `step`.
    """

    is_before: Tensor

    def __init__(self, in_channels: int, num_channels: int, out_channels: int, *, width: int):
        super().__init__()
        if width < 1:
            raise ValueError(f"the channel network needs width >= 1, got {width}")
        self.num_channels, self.width = num_channels, width
        self.features = nn.Linear(in_channels, num_channels * width)
        self.look = SharpFeatures(num_channels)
        self.before = nn.Parameter(
            torch.randn(2 * num_channels, num_channels, width) / num_channels**0.5
        )  # from, to, m
        order = torch.arange(num_channels)
        is_before = order.repeat(2).unsqueeze(1) < order  # (2 C, C): both features of a channel
        self.register_buffer("is_before", is_before.unsqueeze(-1), persistent=False)
        self.out = nn.Parameter(torch.zeros(num_channels, width, out_channels))

    def forward(self, h: Tensor, v: Tensor) -> Tensor:
        weight = (self.before * self.is_before).flatten(1)  # (2 C, C m)
        hidden = self.features(h) + self.look(v) @ weight  # (B, L, C m)
        hidden = F.relu(hidden).square().unflatten(-1, (self.num_channels, self.width))
        return torch.einsum("...cm,cmp->...cp", hidden, self.out)

    def prepare(self, h: Tensor) -> Tensor:
        """What all channels of a position share: (..., W) -> (..., C, m)."""
        return self.features(h).unflatten(-1, (self.num_channels, self.width))

    def step(self, prepared: Tensor, v: Tensor, channel: int) -> Tensor:
        """The parameters of one channel, given v (..., C) of which only the channels before it are read: (..., P)."""
        hidden = prepared[..., channel, :] + self.look(v) @ (self.before[:, channel] * self.is_before[:, channel])
        return F.relu(hidden).square() @ self.out[channel]
