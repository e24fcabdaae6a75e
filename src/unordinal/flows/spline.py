"""Monotone splines as elementwise transformations."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from unordinal.flows.elementwise import ElementwiseTransform


class RationalQuadraticSpline(ElementwiseTransform):
    """A monotone rational-quadratic spline on [-bound, bound] and the identity outside (Durkan et al. 2019).

    The parameters are, before they are constrained, the widths of the bins, their heights, and the slopes at the
    num_bins - 1 inner knots.

    Args:
        num_bins: the number of bins, from 1 to 999.
        bound: half the length of the interval, above 0.

    >>> spline, v = RationalQuadraticSpline(4, bound=3.0), torch.tensor([-2.0, 0.5, 7.0])
    >>> parameters = torch.randn(3, spline.num_parameters)
    >>> torch.allclose(spline.inverse(spline.forward(v, parameters)[0], parameters)[0], v, atol=1e-4)
    True
    """

    SMALLEST_BIN = 1e-3  # as a fraction of the interval; keeps the slope of every bin finite
    SMALLEST_SLOPE = 1e-3

    def __init__(self, num_bins: int = 8, bound: float = 5.0):
        if num_bins < 1 or num_bins * self.SMALLEST_BIN >= 1 or not bound > 0:
            raise ValueError(f"a spline needs 1 to 999 bins and a bound above 0, got {num_bins} and {bound:g}")
        self.num_bins, self.bound = num_bins, bound
        self.num_parameters = 3 * num_bins - 1

    def knots(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return x and y of the knots and the slopes at the knots, each of shape (..., num_bins + 1)."""
        n = self.num_bins
        widths, heights, slopes = parameters.split([n, n, n - 1], dim=-1)
        free = 1 - n * self.SMALLEST_BIN
        x, y = (
            F.pad((self.SMALLEST_BIN + free * torch.softmax(raw, dim=-1)).cumsum(dim=-1)[..., :-1], (1, 1))
            for raw in (widths, heights)
        )
        ends = torch.zeros(n + 1, device=x.device, dtype=x.dtype)
        ends[-1] = 1.0  # the last knot is at the bound exactly, without the rounding error of the sum
        x, y = (2 * self.bound * (k + ends) - self.bound for k in (x, y))
        offset = math.log(math.expm1(1 - self.SMALLEST_SLOPE))  # so that a parameter of 0 gives a slope of 1
        inner = self.SMALLEST_SLOPE + F.softplus(slopes + offset)
        return x, y, F.pad(inner, (1, 1), value=1.0)

    def bin_of(self, value: Tensor, edges: Tensor, knots: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
        """Return left x, width, left y, height and the slopes at both ends of the bin that contains each value."""
        index = (value.unsqueeze(-1) >= edges[..., 1:-1]).sum(dim=-1, keepdim=True)
        x, y, slopes = (k.expand(*value.shape, k.shape[-1]) for k in knots)
        (x0, y0, d0), (x1, y1, d1) = (
            tuple(k.gather(-1, index + i).squeeze(-1) for k in (x, y, slopes)) for i in (0, 1)
        )
        return x0, x1 - x0, y0, y1 - y0, d0, d1

    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        inside = (v > -self.bound) & (v < self.bound)
        knots = self.knots(parameters)
        x0, width, y0, height, d0, d1 = self.bin_of(torch.where(inside, v, 0.0), knots[0], knots)
        s = height / width
        t = (torch.where(inside, v, 0.0) - x0) / width
        below = s + (d0 + d1 - 2 * s) * t * (1 - t)
        z = y0 + height * (s * t.square() + d0 * t * (1 - t)) / below
        log_slope = 2 * torch.log(s / below) + torch.log(d1 * t.square() + 2 * s * t * (1 - t) + d0 * (1 - t).square())
        return torch.where(inside, z, v), torch.where(inside, log_slope, 0.0)

    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        inside = (z > -self.bound) & (z < self.bound)
        knots = self.knots(parameters)
        y = torch.where(inside, z, 0.0)
        x0, width, y0, height, d0, d1 = self.bin_of(y, knots[1], knots)
        s = height / width
        rise, bend = y - y0, d0 + d1 - 2 * s
        a = height * (s - d0) + rise * bend
        b = height * d0 - rise * bend
        c = -s * rise
        # of the two formulas for the root of a quadratic, the one whose terms do not cancel
        t = 2 * c / (-b - torch.sqrt((b.square() - 4 * a * c).clamp(min=0)))
        v = torch.where(inside, x0 + t * width, z)
        return v, -self.forward(v, parameters)[1]

    def start(self) -> Tensor:
        return torch.zeros(self.num_parameters)
