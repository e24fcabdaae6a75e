"""Noise schedules: how much of the data is left at a time, alpha-bar, and how fast the noise 1 - alpha-bar grows."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

# The paper's cosine reaches alpha-bar_T = 0 exactly, whose logarithm is -inf. The official code therefore clips the
# square of each step's alpha at this value before it takes the root, and so does this function.
SMALLEST_SQUARED_ALPHA = 1e-3
COSINE_OFFSET = 0.008

Curve = Callable[[Tensor], Tensor]
"""The noise 1 - alpha-bar at times in [0, 1]: float64 -> float64. It rises from exactly 0 to exactly 1."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """A noise schedule, in discrete steps 0..T or in continuous time from 0 to 1.

    All methods take times as tensors of any shape and compute in float64 on the CPU, as not every device has float64.

    Args:
        curve: the noise as a function of the fraction of time that has passed; see `Curve`.
        num_steps: the number of steps T; None for continuous time.
        table: log alpha-bar_t for t = 0, ..., T, (T + 1,), for a schedule that no curve describes.

    >>> Schedule(linear, num_steps=4).noise(torch.tensor([1, 4])).tolist()
    [0.25, 1.0]
    """

    curve: Curve | None
    num_steps: int | None = None
    table: Tensor | None = None

    def __post_init__(self) -> None:
        if self.num_steps is not None and self.num_steps < 1:
            raise ValueError(f"a schedule needs at least one step, got {self.num_steps}")
        if self.curve is not None:
            check_curve(self.curve)

    @staticmethod
    def of_table(log_alpha: Tensor) -> "Schedule":
        """Return the schedule of a table log alpha-bar_t, t = 0, ..., T."""
        return Schedule(None, len(log_alpha) - 1, log_alpha.double().cpu())

    def log_alpha(self, t: Tensor) -> Tensor:
        """Return log alpha-bar, which may be -inf at the end of time."""
        if self.table is not None:
            return self.table[t.cpu().long()]
        return torch.log1p(-self.noise(t))

    def noise(self, t: Tensor) -> Tensor:
        """Return the noise 1 - alpha-bar."""
        if self.curve is None:
            return -torch.expm1(self.log_alpha(t))
        t = t.cpu().double()
        return self.curve(t if self.num_steps is None else t / self.num_steps)

    def slope(self, t: Tensor) -> Tensor:
        """Return the derivative of the noise with respect to time, by autodiff; for continuous time."""
        assert self.curve is not None
        with torch.enable_grad():
            at = t.detach().cpu().double().requires_grad_()
            (slope,) = torch.autograd.grad(self.curve(at).sum(), at)
        return slope

    def time_of(self, noise: Tensor) -> Tensor:
        """Return the times at which the noise is nearest to the given one: a step from 1 on, or a real number.

        >>> Schedule(linear, num_steps=8).time_of(torch.tensor([0.26])).tolist()
        [2]
        """
        noise = noise.cpu().double()
        if self.num_steps is not None:
            steps = torch.arange(1, self.num_steps + 1, device="cpu")
            return steps[(self.noise(steps) - noise.unsqueeze(-1)).abs().argmin(dim=-1)]
        assert self.curve is not None
        low, high = torch.zeros_like(noise), torch.ones_like(noise)
        for _ in range(53):  # bisection, to the last bit
            middle = (low + high) / 2
            is_below = self.curve(middle) < noise
            low, high = torch.where(is_below, middle, low), torch.where(is_below, high, middle)
        return high


def check_curve(curve: Curve) -> None:
    """Raise a ValueError if a function is not a `Curve`."""
    noise = curve(torch.linspace(0, 1, 101, dtype=torch.float64, device="cpu"))
    if float(noise[0]) != 0 or float(noise[-1]) != 1 or not bool((noise.diff() > 0).all()):
        ends = f"got {float(noise[0]):g} at 0 and {float(noise[-1]):g} at 1"
        raise ValueError(f"the noise of a schedule must rise from exactly 0 at time 0 to exactly 1 at time 1; {ends}")


def linear(t: Tensor) -> Tensor:
    """Return the noise t. Its bound is right, but the variance of a single draw of the bound is infinite."""
    return t


def cosine(t: Tensor) -> Tensor:
    """Return the noise 1 - cos(pi t / 2), without cancellation near 0.

    >>> cosine(torch.tensor([0.0, 1.0], dtype=torch.float64)).tolist()
    [0.0, 1.0]
    """
    return torch.where(t < 0.5, 2 * torch.sin(math.pi / 4 * t).square(), 1 - torch.sin(math.pi / 2 * (1 - t)))


CURVES: dict[str, Curve] = {"linear": linear, "cosine": cosine}


def cosine_schedule(num_steps: int) -> Schedule:
    """Return the cosine schedule of the paper in discrete steps (appendix B, diffusion settings).

    alpha-bar_t = f(t) / f(0) with f(t) = cos((t / T + s) / (1 + s) * pi / 2) and s = 0.008. The decrease of a single
    step is limited, so that alpha-bar_T is positive.

    Args:
        num_steps: the number of steps T, at least 1.

    Returns:
        The schedule.

    >>> cosine_schedule(2).log_alpha(torch.arange(3)).exp().round(decimals=4).tolist()
    [1.0, 0.7027, 0.0222]
    """
    if num_steps < 1:
        raise ValueError(f"a schedule needs at least one step, got {num_steps}")
    time = torch.arange(num_steps + 1, dtype=torch.float64, device="cpu") / num_steps
    f = torch.cos((time + COSINE_OFFSET) / (1 + COSINE_OFFSET) * math.pi / 2)
    alpha = (f[1:] / f[:-1]).clamp(min=math.sqrt(SMALLEST_SQUARED_ALPHA))
    return Schedule.of_table(torch.cat([torch.zeros(1, dtype=torch.float64, device="cpu"), alpha.log().cumsum(0)]))
