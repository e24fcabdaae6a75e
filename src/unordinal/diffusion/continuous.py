"""Uniform noise in continuous time: the limit of multinomial diffusion for infinitely many steps."""

import math

import torch
from torch import Tensor

from unordinal.diffusion.schedules import NoiseCurve, check_curve, inverse_of, linear_noise, slope_of
from unordinal.diffusion.uniform import UniformNoise, excess
from unordinal.numerics import expand_like, one_hot, sum_except_batch


class ContinuousUniformNoise(UniformNoise):
    """Uniform noise in continuous time: at time t a class has been redrawn with probability 1 - alpha-bar_t.

    The bound is an integral over all times in (0, 1]. Nothing is cut off at either end: at time 0 the data are as they
    are, and at time 1 they are uniform noise, so that there is neither a reconstruction term nor a prior term.

    Args:
        num_classes: the number of classes K.
        curve: the noise 1 - alpha-bar as a function of time in [0, 1]. The bound does not depend on it, since the
            network reads the noise and not the time.
        output: what the network predicts, as in `UniformNoise`.

    >>> noise = ContinuousUniformNoise(27)
    >>> noise.corrupt(torch.zeros(1, 4, dtype=torch.long), torch.tensor([1e-9])).tolist()
    [[0, 0, 0, 0]]
    """

    num_steps: int | None  # type: ignore[assignment]

    def __init__(self, num_classes: int, curve: NoiseCurve = linear_noise, *, output: str = "leave-one-out"):
        check_curve(curve)
        super().__init__(num_classes, torch.zeros(2, dtype=torch.float64, device="cpu"), output=output)
        self.curve, self.num_steps = curve, None

    def log_alpha_at(self, t: Tensor) -> Tensor:
        return torch.log1p(-self.curve(t.cpu().double()))

    def network_time(self, t: Tensor) -> Tensor:
        """The network reads the noise, whatever the schedule."""
        return self.curve(t.cpu().double()).to(torch.float32)

    def time_of(self, noise: float) -> Tensor:
        return inverse_of(self.curve, torch.tensor(noise, dtype=torch.float64))

    def prior_kl(self) -> float:
        return 0.0

    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Return the integrand of the negative ELBO at times t: (B,) nats.

        With q_k = alpha [k = x] + (1 - alpha) / K, p_k = alpha r_k + (1 - alpha) / K and rho = q_z / p_z it is
        -alpha' / (K alpha q_z) (KL(q || p) + rho - log rho - 1). Both parts are sums of terms >= 0 in the relative
        differences (q_k - p_k) / p_k, which are computed from [k = x] - r_k, so that nothing cancels as alpha
        approaches 0.
        """
        k, noise = self.num_classes, self.curve(t.cpu().double())  # (B,)
        like = logits[..., 0]
        alpha, floor = (expand_like(v.to(like), like) for v in (1 - noise, noise / k))
        r = torch.softmax(logits, dim=-1)
        onehot = one_hot(x, k, r.dtype)
        p = alpha.unsqueeze(-1) * r + floor.unsqueeze(-1)
        d = alpha.unsqueeze(-1) * (onehot - r) / p  # (q - p) / p
        kl = (p * relative_entropy(d)).sum(dim=-1)
        d_z, p_z = (v.gather(-1, z.unsqueeze(-1)).squeeze(-1) for v in (d, p))
        q_z = torch.where(x == z, alpha, torch.zeros_like(alpha)) + floor
        is_near = d_z.abs() < 0.5
        log_rho = torch.where(is_near, torch.log1p(torch.where(is_near, d_z, 0.0)), q_z.log() - p_z.log())
        both = kl + excess(log_rho)
        slope = expand_like(slope_of(self.curve, t.cpu()).to(like), like)
        alpha = alpha.clamp(min=torch.finfo(alpha.dtype).tiny)  # `both` is 0 where alpha is
        return sum_except_batch(slope / (k * alpha * q_z) * both)

    @property
    def has_paths(self) -> bool:
        return False


def relative_entropy(d: Tensor) -> Tensor:
    """Return (1 + d) log(1 + d) - d, which is at least 0; 1 at d = -1."""
    d = d.clamp(min=-1 + torch.finfo(d.dtype).eps)
    return (1 + d) * torch.log1p(d) - d


def noise_of_rate(rate: float, num_classes: int) -> float:
    """The noise 1 - alpha-bar at which a class differs from the data with probability `rate`.

    >>> round(noise_of_rate(0.5, 3), 6)
    0.75
    """
    if not 0 < rate < 1 - 1 / num_classes + math.ulp(1):
        raise ValueError(f"a rate of errors must be above 0 and at most {1 - 1 / num_classes:g}, got {rate:g}")
    return rate * num_classes / (num_classes - 1)
