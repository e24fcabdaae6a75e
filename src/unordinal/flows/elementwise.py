"""One-dimensional bijections with parameters, and bijections that apply one to every element."""

import math
from abc import ABC, abstractmethod

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.numerics import draw_categorical, mixture_logit, mixture_logit_inverse, sum_except_batch


class ElementwiseTransform(ABC):
    """A family of increasing functions of one number; `parameters` (..., num_parameters) choose one per element."""

    num_parameters: int

    @abstractmethod
    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """(...) -> (z, log dz/dv), elementwise."""

    @abstractmethod
    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """(...) -> (v, log dv/dz), elementwise."""

    @abstractmethod
    def start(self) -> Tensor:
        """Parameters (num_parameters,) to begin from: near the identity, no two of them alike."""


def bent(raw: Tensor, bound: float) -> Tensor:
    """`raw` near zero, never beyond the bound."""
    return bound * torch.tanh(raw / bound)


class Affine(ElementwiseTransform):
    """z = (v - shift) exp(-log_scale), raw parameters bent to stay within bounds.

    Without bounds a stack of couplings answers a number it did not expect with a larger one, layer after layer, until
    float32 has none.
    """

    num_parameters = 2
    LARGEST_SHIFT, LARGEST_LOG_SCALE = 10.0, 2.0

    def parts(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = parameters.unbind(-1)
        return bent(shift, self.LARGEST_SHIFT), bent(log_scale, self.LARGEST_LOG_SCALE)

    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = self.parts(parameters)
        return (v - shift) * torch.exp(-log_scale), -log_scale.expand(v.shape)

    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = self.parts(parameters)
        return z * torch.exp(log_scale) + shift, log_scale.expand(z.shape)

    def start(self) -> Tensor:
        return torch.zeros(2)


class LogisticMixture(ElementwiseTransform):
    """z = logit of the CDF of a mixture of logistics at v: parameters are M logits, M means, M log-scales.

    With a standard logistic base this is the mixture's own density.
    """

    LARGEST_LOG_SCALE = 7.0  # raw log-scales are bent to stay within: beyond, float32 loses v - mean
    SPREAD = 2.0  # of the first means

    def __init__(self, num_mixtures: int):
        if num_mixtures < 1:
            raise ValueError(f"a mixture needs at least 1 component, got {num_mixtures}")
        self.num_mixtures = num_mixtures
        self.num_parameters = 3 * num_mixtures

    def parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, means, raw = parameters.chunk(3, dim=-1)
        return torch.log_softmax(logits, dim=-1), means, bent(raw, self.LARGEST_LOG_SCALE)

    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        return mixture_logit(v, *self.parts(parameters))

    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.parts(parameters)
        with torch.no_grad():
            v, _ = mixture_logit_inverse(z, *parts)
        value, log_slope = mixture_logit(v, *parts)
        if torch.is_grad_enabled() and (z.requires_grad or parameters.requires_grad):
            # one more Newton step, which changes nothing but carries the derivatives of the implicit function
            # (kept finite, since on a flat stretch nothing times infinity would be NaN)
            step = torch.exp(-log_slope.detach()).clamp(max=torch.finfo(v.dtype).max)
            v = v - (value - z) * step
            value, log_slope = mixture_logit(v, *parts)
        return v, -log_slope

    def draw(self, z: Tensor, parameters: Tensor, generator: torch.Generator | None) -> Tensor:
        """Distributed as `inverse` of standard logistic z, but from a component of the mixture: nothing to solve."""
        log_weights, means, log_scales = self.parts(parameters)
        component = draw_categorical(log_weights, generator).unsqueeze(-1)
        mean, log_scale = (part.gather(-1, component).squeeze(-1) for part in (means, log_scales))
        return torch.addcmul(mean, log_scale.exp(), z)

    def start(self) -> Tensor:
        m = self.num_mixtures
        means = torch.linspace(-self.SPREAD, self.SPREAD, m) if m > 1 else torch.zeros(1)
        return torch.cat([torch.zeros(m), means, torch.zeros(m)])


class NonlinearSquared(ElementwiseTransform):
    """z = a + b v + c / (1 + (d v + g)^2), |c| small enough to stay increasing (Ziegler and Rush 2019).

    Parameters: a, log b, raw c, log d, g; logarithms are bent to stay within 3.
    """

    num_parameters = 5
    LARGEST_LOG_SCALE = 3.0
    STEEPEST = 0.95 * 8 * math.sqrt(3) / 9  # of c d / b, below which the slope stays above 0

    def parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """a, log b, k = c d / b, d, g."""
        a, raw_b, raw_c, raw_d, g = parameters.unbind(-1)
        log_b, log_d = (bent(raw, self.LARGEST_LOG_SCALE) for raw in (raw_b, raw_d))
        return a, log_b, self.STEEPEST * torch.tanh(raw_c), torch.exp(log_d), g

    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        a, log_b, k, d, g = self.parts(parameters)
        y = d * v + g
        below = 1 + y.square()
        z = a + torch.exp(log_b) * (v + k / (d * below))
        return z, log_b + torch.log1p(-2 * k * y / below.square())

    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        a, log_b, k, d, g = self.parts(parameters)
        t = (z - a) * torch.exp(-log_b) * d + g  # y + k / (1 + y^2) = t, a cubic with one real root
        with torch.no_grad():
            y = self.root(t, k)
        # one more Newton step, which changes nothing but carries the derivatives of the implicit function
        below = 1 + y.square()
        y = y - (y + k / below - t) / (1 - 2 * k.detach() * y / below.square())
        v = (y - g) / d
        return v, -self.forward(v, parameters)[1]

    FAR = 100.0  # where k / (1 + y^2) is so small that Newton from y = t needs no cubic, which float32 would spoil

    def root(self, t: Tensor, k: Tensor) -> Tensor:
        """The y with y + k / (1 + y^2) = t."""
        near = t.clamp(-self.FAR, self.FAR)
        p, q = 1 - near.square() / 3, k - 2 * near / 3 - 2 * near**3 / 27
        root = torch.sqrt((q.square() / 4 + p**3 / 27).clamp(min=0))
        far = -q / 2 - torch.copysign(root, q)  # the cube root that does not cancel; the other is -p / 3 over it
        cube = torch.copysign(far.abs().clamp(min=torch.finfo(t.dtype).tiny) ** (1 / 3), far)
        y = torch.where(t.abs() < self.FAR, near / 3 + cube - p / (3 * cube), t)
        for _ in range(3):  # polish what was lost to cancellation
            below = 1 + y.square()
            y = y - (y + k / below - t) / (1 - 2 * k * y / below.square())
        return y

    def start(self) -> Tensor:
        return torch.zeros(5)


class RationalQuadraticSpline(ElementwiseTransform):
    """Monotone rational-quadratic spline on [-bound, bound], the identity outside (Durkan et al. 2019).

    Parameters: `num_bins` raw widths, as many raw heights, and num_bins - 1 raw slopes at the inner knots.
    """

    SMALLEST_BIN = 1e-3  # share of the interval; keeps every bin's slope finite
    SMALLEST_SLOPE = 1e-3

    def __init__(self, num_bins: int = 8, bound: float = 5.0):
        if num_bins < 1 or num_bins * self.SMALLEST_BIN >= 1 or not bound > 0:
            raise ValueError(f"a spline needs 1 to 999 bins and a bound above 0, got {num_bins} and {bound:g}")
        self.num_bins, self.bound = num_bins, bound
        self.num_parameters = 3 * num_bins - 1

    def knots(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Positions x and y of the knots and the slopes there: three (..., num_bins + 1)."""
        n = self.num_bins
        widths, heights, slopes = parameters.split([n, n, n - 1], dim=-1)
        free = 1 - n * self.SMALLEST_BIN
        x, y = (
            F.pad((self.SMALLEST_BIN + free * torch.softmax(raw, dim=-1)).cumsum(dim=-1)[..., :-1], (1, 1))
            for raw in (widths, heights)
        )
        ends = torch.zeros(n + 1, device=x.device, dtype=x.dtype)
        ends[-1] = 1.0  # exactly, whatever the sum rounded to
        x, y = (2 * self.bound * (k + ends) - self.bound for k in (x, y))
        offset = math.log(math.expm1(1 - self.SMALLEST_SLOPE))  # raw 0 is slope 1
        inner = self.SMALLEST_SLOPE + F.softplus(slopes + offset)
        return x, y, F.pad(inner, (1, 1), value=1.0)

    def bin_of(self, value: Tensor, edges: Tensor, knots: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, ...]:
        """Left x, width, left y, height, slopes at both ends, of the bin that holds each value."""
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
        t = 2 * c / (-b - torch.sqrt((b.square() - 4 * a * c).clamp(min=0)))  # the root that does not cancel
        v = torch.where(inside, x0 + t * width, z)
        return v, -self.forward(v, parameters)[1]

    def start(self) -> Tensor:
        return torch.zeros(self.num_parameters)


class Elementwise(Bijection):
    """A map applied to every element, with learned parameters per channel or with parameters from `cond`.

    >>> Elementwise(Affine(), num_channels=3)(torch.randn(2, 5, 3))[1].shape
    torch.Size([2])
    """

    def __init__(self, family: ElementwiseTransform, *, num_channels: int, net: nn.Module | None = None):
        super().__init__()
        self.transform, self.net, self.num_channels = family, net, num_channels
        self.start = nn.Parameter(family.start().repeat(num_channels, 1))  # (C, P)

    def parameters_of(self, cond: Tensor | None) -> Tensor:
        if self.net is None:
            return self.start
        if cond is None:
            raise ValueError("this elementwise bijection needs its condition")
        out = self.net(cond)  # (B, *D, H) -> (B, *D, C P)
        return out.unflatten(-1, (self.num_channels, -1)) + self.start

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z, log_slope = self.transform.forward(v, self.parameters_of(cond))
        return z, sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        v, log_slope = self.transform.inverse(z, self.parameters_of(cond))
        return v, sum_except_batch(log_slope)
