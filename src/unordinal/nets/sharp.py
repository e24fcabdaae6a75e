"""Features of lifted numbers that show where a class begins and ends."""

import torch
from torch import Tensor, nn


class SharpFeatures(nn.Module):
    """Each number and a steep tanh of it, its steepness and place learned: (..., C) -> (..., 2 C).

    What matters in a lifted number is often on which side of a boundary it lies; a linear layer of the bare number
    sees its size instead, and takes long to learn the step.
    """

    STEEPNESS = 4.0  # at the start

    def __init__(self, num_channels: int):
        super().__init__()
        self.out_channels = 2 * num_channels
        self.scale = nn.Parameter(torch.full((num_channels,), self.STEEPNESS))
        self.shift = nn.Parameter(torch.zeros(num_channels))

    def forward(self, v: Tensor) -> Tensor:
        return torch.cat([v, torch.tanh(torch.addcmul(self.shift, v, self.scale))], dim=-1)
