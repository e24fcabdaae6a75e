"""One-dimensional transformations with parameters, and a bijection that applies one to every element."""

import math
from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.numerics import Rng, draw_categorical, mixture_logit, mixture_logit_inverse, sum_except_batch


class ElementwiseTransform(ABC):
    """The interface of a family of increasing functions of one real number.

    Every element has `num_parameters` parameters, which choose its function; couplings and autoregressive flows compute
    them with a network. Parameters may be any real numbers.

    >>> z, log_slope = Affine().forward(torch.randn(5, 3), torch.zeros(5, 3, Affine.num_parameters))
    >>> z.shape, log_slope.shape
    (torch.Size([5, 3]), torch.Size([5, 3]))
    """

    num_parameters: int

    @abstractmethod
    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Transform every element.

        Args:
            v: the values, of shape (...).
            parameters: the parameters of every value, of shape (..., num_parameters).

        Returns:
            The results z and log dz/dv, both of shape (...).
        """

    @abstractmethod
    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        """Undo `forward`: return v and log dv/dz, both of the shape of z."""

    @abstractmethod
    def start(self) -> Tensor:
        """Return initial parameters, of shape (num_parameters,), whose function is close to the identity."""


def soft_clip(raw: Tensor, bound: float) -> Tensor:
    """Limit values smoothly to (-bound, bound); values near 0 hardly change."""
    return bound * torch.tanh(raw / bound)


class Affine(ElementwiseTransform):
    """An affine transformation: z = (v - shift) exp(-log_scale).

    The parameters are the shift and the log-scale, both clipped smoothly. Without these bounds, values far from the
    training data can grow from coupling to coupling until float32 overflows.

    >>> z, log_slope = Affine().forward(torch.tensor([3.0]), torch.tensor([[1.0, 0.0]]))
    >>> z
    tensor([2.0033])
    """

    num_parameters = 2
    LARGEST_SHIFT, LARGEST_LOG_SCALE = 10.0, 2.0

    def parts(self, parameters: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = parameters.unbind(-1)
        return soft_clip(shift, self.LARGEST_SHIFT), soft_clip(log_scale, self.LARGEST_LOG_SCALE)

    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = self.parts(parameters)
        return (v - shift) * torch.exp(-log_scale), -log_scale.expand(v.shape)

    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        shift, log_scale = self.parts(parameters)
        return z * torch.exp(log_scale) + shift, log_scale.expand(z.shape)

    def start(self) -> Tensor:
        return torch.zeros(2)


class LogisticMixture(ElementwiseTransform):
    """The logit of the cumulative distribution function of a mixture of logistics (Ho et al. 2019).

    The parameters are M logits of the weights, M means and M log-scales. With standard logistic noise, v is distributed
    as the mixture. The inverse is found by iteration.

    Args:
        num_mixtures: the number of components M, at least 1.

    >>> mixture, v = LogisticMixture(4), torch.randn(5)
    >>> parameters = mixture.start().expand(5, -1)
    >>> z, log_slope = mixture.forward(v, parameters)
    >>> torch.allclose(mixture.inverse(z, parameters)[0], v, atol=1e-5)
    True
    """

    LARGEST_LOG_SCALE = 7.0  # bound of the log-scales; beyond it, float32 cannot represent v - mean
    SPREAD = 2.0  # the initial means lie between -SPREAD and SPREAD

    def __init__(self, num_mixtures: int):
        if num_mixtures < 1:
            raise ValueError(f"a mixture needs at least 1 component, got {num_mixtures}")
        self.num_mixtures = num_mixtures
        self.num_parameters = 3 * num_mixtures

    def parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logits, means, raw = parameters.chunk(3, dim=-1)
        return torch.log_softmax(logits, dim=-1), means, soft_clip(raw, self.LARGEST_LOG_SCALE)

    def forward(self, v: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        return mixture_logit(v, *self.parts(parameters))

    def inverse(self, z: Tensor, parameters: Tensor) -> tuple[Tensor, Tensor]:
        parts = self.parts(parameters)
        with torch.no_grad():
            v, _ = mixture_logit_inverse(z, *parts)
        value, log_slope = mixture_logit(v, *parts)
        if torch.is_grad_enabled() and (z.requires_grad or parameters.requires_grad):
            # One more Newton step does not change the value, but carries the derivatives of the implicit function.
            # Its size is kept finite: where the function is flat, 0 times infinity would be NaN.
            step = torch.exp(-log_slope.detach()).clamp(max=torch.finfo(v.dtype).max)
            v = v - (value - z) * step
            value, log_slope = mixture_logit(v, *parts)
        return v, -log_slope

    def draw(self, z: Tensor, parameters: Tensor, generator: Rng) -> Tensor:
        """Draw v from the mixture without an inverse: choose a component, then scale standard logistic noise z."""
        log_weights, means, log_scales = self.parts(parameters)
        component = draw_categorical(log_weights, generator).unsqueeze(-1)
        mean, log_scale = (part.gather(-1, component).squeeze(-1) for part in (means, log_scales))
        return torch.addcmul(mean, log_scale.exp(), z)

    def start(self) -> Tensor:
        m = self.num_mixtures
        means = torch.linspace(-self.SPREAD, self.SPREAD, m) if m > 1 else torch.zeros(1)
        return torch.cat([torch.zeros(m), means, torch.zeros(m)])


class NonlinearSquared(ElementwiseTransform):
    """The non-linear squared transformation: z = a + b v + c / (1 + (d v + g)^2) (Ziegler and Rush 2019).

    The parameters are a, log b, an unconstrained value for c, log d and g. |c| is kept small enough for the function to
    be increasing, and log b and log d are clipped smoothly to (-3, 3). The inverse is the root of a cubic.

    >>> z, log_slope = NonlinearSquared().forward(torch.tensor([1.5]), torch.zeros(1, 5))
    >>> z
    tensor([1.5000])
    """

    num_parameters = 5
    LARGEST_LOG_SCALE = 3.0
    STEEPEST = 0.95 * 8 * math.sqrt(3) / 9  # bound of |c d / b|; the slope is positive below 8 sqrt(3) / 9

    def parts(self, parameters: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return a, log b, k = c d / b, d and g."""
        a, raw_b, raw_c, raw_d, g = parameters.unbind(-1)
        log_b, log_d = (soft_clip(raw, self.LARGEST_LOG_SCALE) for raw in (raw_b, raw_d))
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
        # One more Newton step does not change the value, but carries the derivatives of the implicit function.
        below = 1 + y.square()
        y = y - (y + k / below - t) / (1 - 2 * k.detach() * y / below.square())
        v = (y - g) / d
        return v, -self.forward(v, parameters)[1]

    FAR = 100.0  # beyond, k / (1 + y^2) is tiny: Newton starts from y = t, as float32 has no accuracy for the cubic

    def root(self, t: Tensor, k: Tensor) -> Tensor:
        """Solve y + k / (1 + y^2) = t for y."""
        near = t.clamp(-self.FAR, self.FAR)
        p, q = 1 - near.square() / 3, k - 2 * near / 3 - 2 * near**3 / 27
        root = torch.sqrt((q.square() / 4 + p**3 / 27).clamp(min=0))
        far = -q / 2 - torch.copysign(root, q)  # the cube whose terms do not cancel; the other root is -p / (3 cube)
        cube = torch.copysign(far.abs().clamp(min=torch.finfo(t.dtype).tiny) ** (1 / 3), far)
        y = torch.where(t.abs() < self.FAR, near / 3 + cube - p / (3 * cube), t)
        for _ in range(3):  # Newton steps restore the digits lost to cancellation
            below = 1 + y.square()
            y = y - (y + k / below - t) / (1 - 2 * k * y / below.square())
        return y

    def start(self) -> Tensor:
        return torch.zeros(5)


class Elementwise(Bijection):
    """Apply a one-dimensional transformation to every element.

    Its parameters are learned, one set per channel, or computed from the condition by a network.

    Args:
        transform: the one-dimensional transformation.
        num_channels: the number of channels C.
        net: a network from the condition (B, *D, H) to (B, *D, C P), where P is `transform.num_parameters`. Without it,
            all positions share the parameters.

    >>> z, log_det = Elementwise(Affine(), num_channels=3)(torch.randn(2, 5, 3))
    >>> log_det.shape
    torch.Size([2])
    """

    def __init__(self, transform: ElementwiseTransform, *, num_channels: int, net: nn.Module | None = None):
        super().__init__()
        self.transform, self.net, self.num_channels = transform, net, num_channels
        self.start = nn.Parameter(transform.start().repeat(num_channels, 1))  # (C, P)

    def parameters_of(self, cond: Tensor | None) -> Tensor:
        """Return the parameters, of shape (C, P) or (B, *D, C, P)."""
        if self.net is None:
            return self.start
        if cond is None:
            raise ValueError("an Elementwise bijection with a network needs a condition; pass cond")
        out = self.net(cond)  # (B, *D, H) -> (B, *D, C P)
        return out.unflatten(-1, (self.num_channels, -1)) + self.start

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        z, log_slope = self.transform.forward(v, self.parameters_of(cond))
        return z, sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        v, log_slope = self.transform.inverse(z, self.parameters_of(cond))
        return v, sum_except_batch(log_slope)
