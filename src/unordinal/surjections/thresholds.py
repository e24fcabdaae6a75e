"""Thresholds: from free noise to numbers of which the chosen one is the largest, with their log-determinants.

Small functions of (noise, x, ...), not bijections of an interface of their own, since they need the class x.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unordinal.numerics import sum_except_batch


def element_at(u: Tensor, x: Tensor) -> Tensor:
    """Element x of each row: (..., K), (...) -> (..., 1)."""
    return u.gather(-1, x.unsqueeze(-1))


def softplus_threshold(u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """v_x = u_x = T and v_i = T - softplus(T - u_i): (v, log |det dv/du|), (B, *D, K) and (B,) (Thresholding)."""
    top = element_at(u, x)
    v, log_slope = below(u, top)
    return chosen(x, top, v), sum_except_batch(log_slope.scatter(-1, x.unsqueeze(-1), 0.0))


def gumbel_threshold(s: Tensor, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor]:
    """The (truncated) Gumbel quantiles of u = sigmoid(s): (v, log |det dv/ds|), (B, *D, K) and (B,) (tab:gumbel).

    v_x is the quantile of the maximum, Gumbel(logsumexp phi), and every other v_i that of Gumbel(phi_i) truncated at
    v_x. s standard logistic makes u uniform and v a Gumbel vector given that its argmax is x. Written in s, since
    sigmoid(s) rounds to 1 long before its quantile is infinite.
    """
    log_e = log_softplus(-s)  # log(-log u)
    top = torch.logsumexp(phi, dim=-1, keepdim=True) - element_at(log_e, x)
    v, _ = below(phi - log_e, top)  # a truncated Gumbel is the softplus threshold of a Gumbel
    log_slope = logsigmoid(-s) - torch.logaddexp(phi - top, log_e)
    log_slope_top = element_at(logsigmoid(-s) - log_e, x)
    log_slope = log_slope.scatter(-1, x.unsqueeze(-1), log_slope_top)
    return chosen(x, top, v), sum_except_batch(log_slope)


def gumbel_log_prob(v: Tensor, x: Tensor, phi: Tensor) -> Tensor:
    """log q(v | x) of Gumbels with locations phi given that the largest is at x: (B, *D, K) -> (B,)."""
    log_prob = phi - v - torch.exp(phi - v)
    given = torch.logsumexp(phi, dim=-1) - element_at(phi, x).squeeze(-1)
    return sum_except_batch(log_prob.sum(dim=-1) + given)


def below(u: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """T - softplus(T - u), never above the float before T, and the log of its slope, elementwise."""
    v = top + logsigmoid(u - top)
    highest = torch.nextafter(top.detach(), torch.full_like(top, -math.inf))  # where it would tie, x must still win
    return torch.minimum(v, highest), logsigmoid(top - u)


def chosen(x: Tensor, top: Tensor, others: Tensor) -> Tensor:
    """`others` with `top` (..., 1) put at class x."""
    return others.scatter(-1, x.unsqueeze(-1), top)


SMALL = 15.0  # below -15 the series of log_softplus is exact to 1e-13


def log_softplus(a: Tensor) -> Tensor:
    """log(log(1 + exp a)), also where the inner logarithm would underflow."""
    low = a < -SMALL
    # log(softplus(a)) = a - exp(a)/2 + O(exp(2a)) for very negative a
    return torch.where(
        low, a - 0.5 * torch.exp(torch.where(low, a, 0.0)), torch.log(-logsigmoid(torch.where(low, 0.0, -a)))
    )
