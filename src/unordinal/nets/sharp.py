"""Features of continuous values that show on which side of a class boundary they lie."""

import torch
from torch import Tensor, nn


class SharpFeatures(nn.Module):
    """Each value together with a steep tanh of it, whose slope and position are learned: (..., C) -> (..., 2 C).

    What matters in the continuous code of a class is often on which side of a boundary it lies. A network that reads
    only the value takes long to learn such a step.
    """

    STEEPNESS = 4.0  # initial slope of the tanh

    def __init__(self, num_channels: int):
        super().__init__()
        self.out_channels = 2 * num_channels
        self.scale = nn.Parameter(torch.full((num_channels,), self.STEEPNESS))
        self.shift = nn.Parameter(torch.zeros(num_channels))

    def forward(self, v: Tensor) -> Tensor:
        return torch.cat([v, torch.tanh(torch.addcmul(self.shift, v, self.scale))], dim=-1)
