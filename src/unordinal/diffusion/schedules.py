"""Noise schedules: log alpha-bar_t for t = 0..T in float64, where alpha-bar_t is the fraction of signal left at t."""

import math

import torch
from torch import Tensor

# The paper's cosine reaches alpha-bar_T = 0 exactly, whose logarithm is -inf. The official code therefore clips the
# square of each step's alpha at this value before it takes the root, and so does this function.
SMALLEST_SQUARED_ALPHA = 1e-3
COSINE_OFFSET = 0.008


def cosine_schedule(num_steps: int) -> Tensor:
    """Compute the cosine schedule of the paper (appendix B, diffusion settings).

    alpha-bar_t = f(t) / f(0) with f(t) = cos((t / T + s) / (1 + s) * pi / 2) and s = 0.008. The decrease of a single
    step is limited, so that alpha-bar_T is positive.

    Args:
        num_steps: the number of steps T, at least 1.

    Returns:
        log alpha-bar_t for t = 0, ..., T, of shape (T + 1,) in float64; the first entry is 0.

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
