"""Embeddings of diffusion time and of position."""

import math

import torch
from torch import Tensor, nn

LONGEST_PERIOD = 10_000.0


def sinusoids(values: Tensor, num_channels: int, longest_period: float = LONGEST_PERIOD) -> Tensor:
    """Return cosines and sines of `values` at geometrically spaced frequencies: (B,) -> (B, num_channels).

    `num_channels` must be even.
    """
    half = num_channels // 2
    exponent = torch.arange(half, device=values.device, dtype=torch.float32) / half
    angles = values.unsqueeze(-1) * torch.exp(-math.log(longest_period) * exponent).to(values.dtype)
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class TimeEmbedding(nn.Module):
    """An embedding of times in [0, 1] by sinusoids and a small network: (B,) -> (B, num_channels)."""

    # Time is scaled to [0, STRETCH], so that neighbouring steps of a chain of 1000 steps have different embeddings.
    STRETCH = 1000.0

    def __init__(self, num_channels: int, num_hidden: int):
        super().__init__()
        self.num_channels = num_channels
        self.hidden = nn.Linear(num_channels, num_hidden)
        self.out = nn.Linear(num_hidden, num_channels)

    def forward(self, time: Tensor) -> Tensor:
        h = sinusoids(time.to(self.out.weight.dtype) * self.STRETCH, self.num_channels)
        return self.out(nn.functional.silu(self.hidden(h)))


def rotary_angles(length: int, head_channels: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the cosines and sines of a rotary position embedding, each of shape (L, 1, head_channels / 2)."""
    return rotary_angles_at(torch.arange(length, device=device), head_channels)


def rotary_angles_at(places: Tensor, head_channels: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines at the given positions (L,), each of shape (L, 1, head_channels / 2)."""
    half = head_channels // 2
    frequency = LONGEST_PERIOD ** (-torch.arange(half, device=places.device, dtype=torch.float32) / half)
    angles = places.to(torch.float32).unsqueeze(-1) * frequency
    return angles.cos().unsqueeze(1), angles.sin().unsqueeze(1)


def rotate(h: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair of channels by the angle of its position; h has shape (..., L, heads, C)."""
    a, b = h.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
