"""Linear layers: those inside a network, and those whose output starts at zero."""

from torch import nn


class InnerLinear(nn.Linear):
    """A linear layer from features to features, neither an embedding nor an output.

    The optimiser `muon` orthogonalises the updates of every layer that says `is_inner`, and leaves the others to AdamW.
    A layer of your own says so in the same way.
    """

    is_inner = True


def zero_linear(in_channels: int, out_channels: int) -> nn.Linear:
    """A linear layer whose output starts at zero."""
    layer = nn.Linear(in_channels, out_channels)
    nn.init.zeros_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
