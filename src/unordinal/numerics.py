"""Small numerical functions that several models share."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unordinal.errors import NotANumberError

Rng = torch.Generator | None
"""A random number generator; None is torch's global one."""


def sum_except_batch(values: Tensor) -> Tensor:
    """Sum over every axis but the first: (B, *D) -> (B,)."""
    return values.reshape(values.shape[0], -1).sum(dim=1)


def expand_like(values: Tensor, reference: Tensor) -> Tensor:
    """Add trailing axes of size one so that (B,) broadcasts against (B, *D)."""
    return values.reshape(values.shape[0], *([1] * (reference.dim() - 1)))


def class_counts(x: Tensor, num_classes: int) -> Tensor:
    """Count how often each class occurs: (...) -> (K,) float32. Unlike `bincount`, it never waits for the device."""
    ones = torch.ones((), device=x.device).expand(x.numel())
    return torch.zeros(num_classes, device=x.device).scatter_add_(0, x.flatten().long(), ones)


def uniform(shape: tuple[int, ...] | torch.Size, device: torch.device, generator: Rng) -> Tensor:
    """Draw uniform numbers on [0, 1) that are accurate enough to be compared with probabilities near zero.

    In the first of 4000 diffusion steps, a class changes with probability 5e-6. With float32 uniforms, which are
    multiples of 2^-24, this probability would be off by one per cent, so the draws are float64 (except on MPS, which
    has no float64).
    """
    dtype = torch.float32 if device.type == "mps" else torch.float64
    return torch.rand(shape, generator=generator, device=device, dtype=dtype)


def draw_categorical(logits: Tensor, generator: Rng) -> Tensor:
    """Draw one class per row from softmax(logits): (..., K) -> (...).

    The class with the smallest E_k / p_k is drawn, where E_k are independent exponentials. This needs no cumulative
    sum, and small probabilities are accurate, unlike with Gumbel noise computed from float32 uniforms.
    """
    probs = torch.softmax(logits, dim=-1)
    if bool(torch.isnan(probs).any()):  # argmax would treat a NaN as the largest value
        raise NotANumberError("the logits of a class to be drawn are NaN; has the training diverged?")
    race = torch.empty_like(probs).exponential_(generator=generator)
    return (probs / race).argmax(dim=-1)


def sharpened(logits: Tensor, temperature: float, top_p: float = 1.0) -> Tensor:
    """Return the logits of a distribution that is sharper than softmax(logits): (..., K) -> (..., K).

    Args:
        logits: the logits.
        temperature: divides the logits; at 0 only the likeliest class is left.
        top_p: keep the likeliest classes that together have at least this probability, and drop the others.
    """
    if temperature < torch.finfo(logits.dtype).tiny:
        best = logits.argmax(dim=-1, keepdim=True)
        return torch.full_like(logits, -math.inf).scatter(-1, best, 0.0)
    if temperature != 1:  # the largest becomes 0 first, so that a small temperature cannot overflow
        logits = (logits - logits.amax(dim=-1, keepdim=True)) / temperature
    if top_p < 1:
        p, order = torch.softmax(logits, dim=-1).sort(dim=-1, descending=True)
        is_dropped = p.cumsum(dim=-1) - p >= top_p  # those before it suffice
        is_dropped[..., 0] = False  # a tiny `top_p` is 0 in float32
        dropped = torch.zeros_like(is_dropped).scatter(-1, order, is_dropped)
        logits = logits.masked_fill(dropped, -math.inf)
    return logits


def full_precision(logits: Tensor) -> Tensor:
    """Return logits in float32 where they are of a shorter type, in which a loss would lose its digits."""
    return logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits


def standard_error(values: Tensor, rank: Tensor | None = None) -> float | None:
    """Estimate the standard error of the mean of values.

    Stratified values vary between strata, which their mean does not. The estimate for them therefore uses differences
    of values in neighbouring strata; it is too large rather than too small where the strata differ.

    Args:
        values: the values, of shape (N,).
        rank: the rank of each value along the strata, of shape (N,), if the values are stratified.

    Returns:
        The standard error, or None for fewer than two values.
    """
    num = len(values)
    if num < 2:
        return None
    if rank is None:
        return float(values.std() / math.sqrt(num))
    ordered = values[torch.argsort(rank)]
    variance = ordered.diff().square().sum() / (2 * (num - 1))
    return float((variance / num).sqrt())


def mixture_logit(v: Tensor, log_weights: Tensor, means: Tensor, log_scales: Tensor) -> tuple[Tensor, Tensor]:
    """Compute the logit of the CDF of a mixture of logistics at v, and the log of its derivative with respect to v.

    Everything is computed in log space, so that float32 is accurate in both tails.

    Args:
        v: where to evaluate it, of shape (...).
        log_weights: the normalised log-weights of the M components, of shape (..., M).
        means: the means of the components, of shape (..., M).
        log_scales: the log-scales of the components, of shape (..., M).

    Returns:
        The logit and its log-derivative, both of shape (...).
    """
    x = (v.unsqueeze(-1) - means) * torch.exp(-log_scales)
    log_below = logsigmoid(x)
    log_above = log_below - x
    log_cdf = torch.logsumexp(log_weights + log_below, dim=-1)
    log_rest = torch.logsumexp(log_weights + log_above, dim=-1)
    log_density = torch.logsumexp(log_weights + log_below + log_above - log_scales, dim=-1)
    return log_cdf - log_rest, log_density - log_cdf - log_rest


FIRST_POINTS = 6  # components whose quantiles are the first points of the inverse, with the lowest and the highest one
MOST_ITERATIONS = 60  # each shrinks the bracket to a third or less, so 40 reach the resolution of float64


def mixture_logit_inverse(
    y: Tensor, log_weights: Tensor, means: Tensor, log_scales: Tensor, *, tolerance: float | None = None
) -> tuple[Tensor, int]:
    """Solve mixture_logit(v) = y for v. The result carries no gradient.

    The smallest and the largest quantile of the components bracket the quantile of the mixture. Each iteration
    evaluates three points: the estimate by cubic interpolation of the inverse function through both ends of the
    bracket, which converges with fourth order near the root, and the two points that cut the bracket into three equal
    parts, so that it shrinks for every function. An element is finished, and not evaluated again, when its Newton
    correction is small.

    Args:
        y: the values of the logit, of shape (...).
        log_weights: the normalised log-weights of the M components, of shape (..., M).
        means: the means of the components, of shape (..., M).
        log_scales: the log-scales of the components, of shape (..., M).
        tolerance: the size of the Newton correction, relative to 1 + |v|, below which an element is finished. Default:
            16 times the machine epsilon of the dtype.

    Returns:
        v, of shape (...), and the number of evaluations that the slowest element needed.
    """
    tolerance = 16 * torch.finfo(y.dtype).eps if tolerance is None else tolerance
    shape = y.shape
    quantiles = (means + torch.exp(log_scales) * y.unsqueeze(-1)).reshape(y.numel(), -1)  # (N, M)
    if quantiles.shape[-1] == 1:
        return quantiles.view(shape), 0
    parameters = [p.expand(*shape, -1).reshape(y.numel(), 1, -1) for p in (log_weights, means, log_scales)]
    target = y.reshape(-1, 1)
    points = torch.cat(
        [quantiles.amin(-1, keepdim=True), quantiles.amax(-1, keepdim=True), quantiles[:, :FIRST_POINTS]], dim=-1
    )
    values, slopes = mixture_logit(points, *parameters)
    bracket = narrow_bracket(points, values - target, slopes)
    found, todo = torch.empty_like(target[:, 0]), torch.arange(len(target), device=y.device)
    iterations = 1
    while True:
        low, high = bracket[0].unbind(-1)
        guess = root_guess(*bracket)
        tried = torch.stack([guess, (2 * low + high) / 3, (low + 2 * high) / 3], dim=-1)
        values, slopes = mixture_logit(tried, *parameters)
        values = values - target
        iterations += 1
        # where the function is flat, exp(-slope) overflows, and 0 times infinity would be NaN
        correction = torch.where(values[:, 0] == 0, 0.0, values[:, 0] * torch.exp(-slopes[:, 0]))
        allowed = tolerance * (1 + guess.abs())
        is_open = (correction.abs() > allowed) & (high - low > allowed)
        found[todo] = torch.minimum(torch.maximum(guess - correction, low), high)
        if iterations == MOST_ITERATIONS or not bool(is_open.any()):
            return found.view(shape), iterations
        joined = [torch.cat(pair, dim=-1) for pair in zip(bracket, (tried, values, slopes), strict=True)]
        if not bool(is_open.all()):
            todo, target = todo[is_open], target[is_open]
            parameters, joined = [p[is_open] for p in parameters], [part[is_open] for part in joined]
        bracket = narrow_bracket(*joined)


def narrow_bracket(points: Tensor, values: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the points nearest to the root on either side, with their values and slopes: three (N, P) -> (N, 2)."""
    is_left = values <= 0
    left = torch.where(is_left, points, -math.inf).argmax(dim=-1, keepdim=True)
    right = torch.where(is_left, math.inf, points).argmin(dim=-1, keepdim=True)
    # Rounding may put an end of the first bracket on the wrong side of the root; it remains an end nevertheless.
    left = torch.where(is_left.any(-1, keepdim=True), left, points.argmin(dim=-1, keepdim=True))
    right = torch.where(is_left.all(-1, keepdim=True), points.argmax(dim=-1, keepdim=True), right)
    ends = torch.cat([left, right], dim=-1)
    return points.gather(-1, ends), values.gather(-1, ends), slopes.gather(-1, ends)


def root_guess(points: Tensor, values: Tensor, log_slopes: Tensor) -> Tensor:
    """Estimate the root of an increasing function by cubic interpolation of its inverse through two points (..., 2)."""
    (low, high), (value_low, value_high) = points.unbind(-1), values.unbind(-1)
    rise = value_high - value_low
    t = torch.where(rise > 0, -value_low / rise.clamp(min=torch.finfo(rise.dtype).tiny), 0.5)
    step_low, step_high = torch.exp(-log_slopes).unbind(-1)
    cubic = (1 + 2 * t) * (1 - t) ** 2 * low + t**2 * (3 - 2 * t) * high
    cubic = cubic + rise * t * (1 - t) * ((1 - t) * step_low - t * step_high)
    chord = low + t * (high - low)  # linear interpolation, used where the cubic leaves the bracket
    chosen = torch.where((cubic > low) & (cubic < high), cubic, chord)
    return torch.minimum(torch.maximum(chosen, low), high)


def one_hot(x: Tensor, num_classes: int, dtype: torch.dtype) -> Tensor:
    """Return one-hots of classes, (...) -> (..., K), without looking at the values as torch's own does on a CPU.

    >>> one_hot(torch.tensor([2, 0]), 3, torch.float32).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    return (x.unsqueeze(-1) == torch.arange(num_classes, device=x.device)).to(dtype)


def mutual_information(a: np.ndarray, b: np.ndarray, sizes: tuple[int, int]) -> float:
    """Return the mutual information of two columns in nats, less the bias that counting adds to it."""
    joint = np.bincount(a.astype(np.int64) * sizes[1] + b, minlength=sizes[0] * sizes[1]).reshape(sizes) / len(a)
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    raw = float((joint[seen] * np.log(joint[seen] / outer[seen])).sum())
    num = (int((joint.sum(axis=1) > 0).sum()) - 1) * (int((joint.sum(axis=0) > 0).sum()) - 1)
    return raw - num / (2 * len(a))


def tempered(log_p: Tensor, log_q: Tensor, weight: float) -> Tensor:
    """Return (1 - weight) log_p + weight log_q, in which classes that either lacks stay impossible.

    >>> tempered(torch.tensor([-1.0, -math.inf]), torch.tensor([-2.0, -math.inf]), 2.0).tolist()
    [-3.0, -inf]
    """
    if weight in (0, 1):
        return log_q if weight else log_p
    mixed = (1 - weight) * log_p + weight * log_q
    return torch.where(torch.isneginf(log_p) | torch.isneginf(log_q), -math.inf, mixed)
