"""Noise schedules: log alpha-bar_t for t = 0..T, in float64."""

import math

import torch
from torch import Tensor

# The cosine of the paper reaches alpha-bar_T = 0 exactly, and log 0 breaks every closed form. The official code clips
# the square of one step's alpha at this value before it takes the root; so do we.
SMALLEST_SQUARED_ALPHA = 1e-3
COSINE_OFFSET = 0.008


def cosine_schedule(num_steps: int) -> Tensor:
    """Log of alpha-bar_t = f(t) / f(0), f(t) = cos((t/T + s) / (1 + s) * pi/2) (appendix B, diffusion settings).

    Returns (T + 1,) float64 with entry 0 equal to 0.

    >>> cosine_schedule(2).exp().round(decimals=4).tolist()
    [1.0, 0.7027, 0.0222]
    """
    if num_steps < 1:
        raise ValueError(f"a schedule needs at least one step, got {num_steps}")
    time = torch.arange(num_steps + 1, dtype=torch.float64, device="cpu") / num_steps
    f = torch.cos((time + COSINE_OFFSET) / (1 + COSINE_OFFSET) * math.pi / 2)
    alpha = (f[1:] / f[:-1]).clamp(min=math.sqrt(SMALLEST_SQUARED_ALPHA))
    return torch.cat([torch.zeros(1, dtype=torch.float64, device="cpu"), alpha.log().cumsum(0)])


SCHEDULES = {"cosine": cosine_schedule}
