"""Thresholding: transformations from unconstrained noise to v whose largest element is at x, with log-determinants.

They are functions and do not follow the `Bijection` interface, because they need the class x.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unordinal.numerics import sum_except_batch


def element_at(u: Tensor, x: Tensor) -> Tensor:
    """Return element x of each row: (..., K), (...) -> (..., 1)."""
    return u.gather(-1, x.unsqueeze(-1))


def softplus_threshold(u: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Softplus thresholding: v_x = u_x = T and v_i = T - softplus(T - u_i) for all other elements (Alg. 3).

    Args:
        u: noise, of shape (B, *D, K).
        x: classes, of shape (B, *D).

    Returns:
        v, of shape (B, *D, K), and log |det dv/du|, of shape (B,).
    """
    top = element_at(u, x)
    v, log_slope = squash_below(u, top)
    return replace_at(x, top, v), sum_except_batch(log_slope.scatter(-1, x.unsqueeze(-1), 0.0))


def gumbel_threshold(s: Tensor, x: Tensor, phi: Tensor) -> tuple[Tensor, Tensor]:
    """Gumbel thresholding: quantiles of (truncated) Gumbel distributions at u = sigmoid(s) (tab:gumbel).

    v_x is a quantile of the maximum, Gumbel(logsumexp phi), and every other v_i a quantile of Gumbel(phi_i) truncated
    at v_x. If s is standard logistic, u is uniform and v is a vector of Gumbels given that its argmax is x. The
    formulas use s, because sigmoid(s) rounds to 1 long before the quantile is infinite.

    Args:
        s: the logit of the noise, of shape (B, *D, K).
        x: classes, of shape (B, *D).
        phi: locations of the Gumbels, of shape (B, *D, K).

    Returns:
        v, of shape (B, *D, K), and log |det dv/ds|, of shape (B,).
    """
    log_e = log_softplus(-s)  # log(-log u)
    top = torch.logsumexp(phi, dim=-1, keepdim=True) - element_at(log_e, x)
    v, _ = squash_below(phi - log_e, top)  # a truncated Gumbel is the softplus threshold of a Gumbel
    log_slope = logsigmoid(-s) - torch.logaddexp(phi - top, log_e)
    log_slope_top = element_at(logsigmoid(-s) - log_e, x)
    log_slope = log_slope.scatter(-1, x.unsqueeze(-1), log_slope_top)
    return replace_at(x, top, v), sum_except_batch(log_slope)


def gumbel_log_prob(v: Tensor, x: Tensor, phi: Tensor) -> Tensor:
    """Return log q(v | x) of Gumbels with locations phi given that the largest is at x: (B, *D, K) -> (B,)."""
    log_prob = phi - v - torch.exp(phi - v)
    given = torch.logsumexp(phi, dim=-1) - element_at(phi, x).squeeze(-1)
    return sum_except_batch(log_prob.sum(dim=-1) + given)


def squash_below(u: Tensor, top: Tensor) -> tuple[Tensor, Tensor]:
    """Return T - softplus(T - u), rounded such that it is always below T, and the log of its slope, elementwise."""
    v = top + logsigmoid(u - top)
    # At most the largest float below T, so that no other element ties with x.
    highest = torch.nextafter(top.detach(), torch.full_like(top, -math.inf))
    return torch.minimum(v, highest), logsigmoid(top - u)


def replace_at(x: Tensor, top: Tensor, others: Tensor) -> Tensor:
    """Return `others` (..., K) with element x replaced by `top` (..., 1)."""
    return others.scatter(-1, x.unsqueeze(-1), top)


SMALL = 15.0  # below -15, the first terms of the series of log_softplus are exact to 1e-13


def log_softplus(a: Tensor) -> Tensor:
    """Compute log(log(1 + exp a)), also where the inner logarithm would underflow."""
    low = a < -SMALL
    # log(softplus(a)) = a - exp(a)/2 + O(exp(2a)) for very negative a
    return torch.where(
        low, a - 0.5 * torch.exp(torch.where(low, a, 0.0)), torch.log(-logsigmoid(torch.where(low, 0.0, -a)))
    )
