"""Noise schedules: how much of the signal is left at a time.

Multinomial diffusion in discrete steps takes a table of log alpha-bar_t for t = 0..T. Processes in continuous time, and
absorbing noise, take a function: the noise 1 - alpha-bar at times in [0, 1], which rises from 0 to 1.
"""

import math
from collections.abc import Callable

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

NoiseCurve = Callable[[Tensor], Tensor]
"""The noise 1 - alpha-bar at times in [0, 1]: float64 -> float64. It rises from exactly 0 to exactly 1."""


def linear_noise(t: Tensor) -> Tensor:
    """1 - alpha-bar = t.

    >>> linear_noise(torch.tensor([0.0, 0.25, 1.0])).tolist()
    [0.0, 0.25, 1.0]
    """
    return t


def cosine_noise(t: Tensor) -> Tensor:
    """1 - alpha-bar = 1 - cos(pi t / 2), without cancellation near 0.

    >>> cosine_noise(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
    [0.0, 1.0]
    """
    return torch.where(t < 0.5, 2 * torch.sin(math.pi / 4 * t).square(), 1 - torch.sin(math.pi / 2 * (1 - t)))


CURVES: dict[str, NoiseCurve] = {"linear": linear_noise, "cosine": cosine_noise}


def slope_of(curve: NoiseCurve, t: Tensor) -> Tensor:
    """The derivative of the noise with respect to time, by autodiff: (B,) -> (B,) float64."""
    with torch.enable_grad():
        at = t.detach().double().requires_grad_()
        (slope,) = torch.autograd.grad(curve(at).sum(), at)
    return slope


def inverse_of(curve: NoiseCurve, noise: Tensor) -> Tensor:
    """The times at which a curve has reached some noise, by bisection: (...) -> (...) float64.

    >>> inverse_of(linear_noise, torch.tensor([0.25])).tolist()
    [0.25]
    """
    low, high = torch.zeros_like(noise, dtype=torch.float64), torch.ones_like(noise, dtype=torch.float64)
    for _ in range(53):
        middle = (low + high) / 2
        is_below = curve(middle) < noise
        low, high = torch.where(is_below, middle, low), torch.where(is_below, high, middle)
    return high


def check_curve(curve: NoiseCurve) -> None:
    """Refuse a function that is no noise curve."""
    t = torch.linspace(0, 1, 101, dtype=torch.float64, device="cpu")
    noise = curve(t)
    if float(noise[0]) != 0 or float(noise[-1]) != 1 or not bool((noise.diff() > 0).all()):
        ends = f"got {float(noise[0]):g} at 0 and {float(noise[-1]):g} at 1"
        raise ValueError(f"the noise of a schedule must rise from exactly 0 at time 0 to exactly 1 at time 1; {ends}")
