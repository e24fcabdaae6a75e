"""The linear layer that outputs of flows begin with."""

from torch import nn


def zero_linear(in_channels: int, out_channels: int) -> nn.Linear:
    """A linear layer whose output starts at zero."""
    layer = nn.Linear(in_channels, out_channels)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
