"""Uniform noise in continuous time: the limit of multinomial diffusion for infinitely many steps."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.diffusion.schedules import Schedule, cosine
from unordinal.diffusion.uniform import ClassTerms, UniformNoise, excess
from unordinal.numerics import expand_like


class ContinuousUniformNoise(UniformNoise):
    """Uniform noise in continuous time: at time t a class has been redrawn with probability 1 - alpha-bar_t.

    The bound is an integral over all times in (0, 1]. Nothing is cut off at either end: at time 0 the data are as they
    are, and at time 1 they are uniform noise, so that there is neither a reconstruction term nor a prior term. The
    network predicts each position from the others, the paper's r. With a prediction from all positions the bound would
    be minus infinity for any network with bounded logits, since its integrand grows as 1 / noise near time 0.

    Args:
        num_classes: the number of classes K, or one number for each column.
        schedule: how much noise there is at a time; a curve in continuous time. The bound does not depend on it, since
            the network reads the noise and not the time. The variance of a draw is infinite with a linear schedule.
        ends: whether examples may end early.

    >>> noise = ContinuousUniformNoise(27)
    >>> noise.corrupt(torch.zeros(1, 4, dtype=torch.long), torch.tensor([1e-9])).tolist()
    [[0, 0, 0, 0]]
    """

    def __init__(
        self, num_classes: int | Sequence[int] | Classes, schedule: Schedule | None = None, *, ends: bool = False
    ):
        super().__init__(num_classes, schedule or Schedule(cosine), ends=ends)
        if self.schedule.num_steps is not None or self.schedule.curve is None:
            raise ValueError("noise in continuous time needs a schedule in continuous time, made from a curve")

    def network_time(self, t: Tensor) -> Tensor:
        """Return the noise: the network reads it, whatever the schedule."""
        return self.schedule.noise(t).to(torch.float32)

    def prior_kl(self) -> Tensor:
        return torch.zeros(())

    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        """Return the integrand of the negative ELBO at times t: (B,) nats.

        With m = (1 - alpha) / K, q_k = alpha [k = x] + m, p_k = alpha r_k + m and rho = q_z / p_z it is
        -alpha' / (K alpha q_z) (KL(q || p) + rho - log rho - 1). The KL is sum_k q_k (exp(d_k) - 1 - d_k) with
        d_k = log(p_k / q_k), whose terms are >= 0; for k other than x, d_k is log1p(alpha r_k / m), so that the sum of
        this term is the only reduction over K.
        """
        k, noise, like = self.class_numbers(logits), self.schedule.noise(t), self.like(logits, x)
        ends, x, z = x, self.inside(x), self.inside(z)
        # alpha is 0 at the end of time, where the sum below is 0 as well
        alpha = expand_like((1 - noise).to(like), like).clamp(min=torch.finfo(like.dtype).tiny ** 0.5)
        m, slope = (expand_like(v.to(like), like) for v in (noise, self.schedule.slope(t)))
        m = m / k
        ratio = alpha / m
        log_r_x, log_r_z, sum_ell = self.classes.reduce(ClassTerms.apply, logits, ratio, x, z)
        r_x, same = log_r_x.exp(), x == z
        ell_x, ell_z = torch.log1p(ratio * r_x), torch.log1p(ratio * log_r_z.exp())
        log_ratio = torch.log1p(ratio)  # log(q_x / m)
        kl = (alpha + m) * excess(ell_x - log_ratio) + m * (ratio * (1 - r_x) - (sum_ell - ell_x))
        log_rho = torch.where(same, log_ratio, torch.zeros_like(log_ratio)) - ell_z
        q_z = torch.where(same, alpha, torch.zeros_like(alpha)) + m
        return self.total(slope / (k * alpha * q_z) * (kl + excess(log_rho)), ends)

    @property
    def has_paths(self) -> bool:
        return False


def noise_of_rate(rate: float, num_classes: int) -> float:
    """Return the noise 1 - alpha-bar at which a class differs from the data with probability `rate`.

    >>> round(noise_of_rate(0.5, 3), 6)
    0.75
    """
    if not 0 < rate < 1 - 1 / num_classes + math.ulp(1):
        raise ValueError(f"a rate of errors must be above 0 and at most {1 - 1 / num_classes:g}, got {rate:g}")
    return rate * num_classes / (num_classes - 1)
