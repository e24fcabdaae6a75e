"""Small numerical pieces that several models share."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from unordinal.errors import NotANumberError


def sum_except_batch(values: Tensor) -> Tensor:
    """Sum over every axis but the first: (B, *D) -> (B,)."""
    return values.reshape(values.shape[0], -1).sum(dim=1)


def expand_like(values: Tensor, reference: Tensor) -> Tensor:
    """Add trailing axes of size one so that (B,) broadcasts against (B, *D)."""
    return values.reshape(values.shape[0], *([1] * (reference.dim() - 1)))


def class_counts(x: Tensor, num_classes: int) -> Tensor:
    """How often each class occurs: (...) -> (K,) float32. Unlike `bincount` it does not look at the values first."""
    ones = torch.ones((), device=x.device).expand(x.numel())
    return torch.zeros(num_classes, device=x.device).scatter_add_(0, x.flatten().long(), ones)


def uniform(shape: tuple[int, ...] | torch.Size, device: torch.device, generator: torch.Generator | None) -> Tensor:
    """Uniform draws on [0, 1), fine enough for probabilities near zero.

    float32 uniforms are multiples of 2^-24, which is off by a percent at the probability of 5e-6 that a symbol
    changes in the first of 4000 diffusion steps; float64 is exact there. MPS has no float64.
    """
    dtype = torch.float32 if device.type == "mps" else torch.float64
    return torch.rand(shape, generator=generator, device=device, dtype=dtype)


def draw_categorical(logits: Tensor, generator: torch.Generator | None) -> Tensor:
    """One class per row from softmax(logits): (..., K) -> (...).

    An exponential race (the class of the smallest E_k / p_k): one pass and no cumulative sum, and unlike Gumbel noise
    from float32 uniforms it has no floor under small probabilities.
    """
    probs = torch.softmax(logits, dim=-1)
    if bool(torch.isnan(probs).any()):  # argmax would take a NaN for the largest
        raise NotANumberError("the logits of a class to be drawn are NaN; has the training diverged?")
    race = torch.empty_like(probs).exponential_(generator=generator)
    return (probs / race).argmax(dim=-1)


def standard_error(values: Tensor, rank: Tensor | None = None) -> float | None:
    """Of the mean of `values` (N,). With `rank`, values are stratified along it and neighbours share a stratum.

    Stratified values vary with time far more than their mean does; successive differences along the strata leave that
    part out (and, where the strata differ, err on the large side).
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
    """Logit of the CDF of a mixture of logistics at v, and the log of its derivative: two (...).

    `v` (...), parameters (..., M), weights normalised. All in log space: float32 neither saturates nor loses a tail.
    """
    x = (v.unsqueeze(-1) - means) * torch.exp(-log_scales)
    log_below = logsigmoid(x)
    log_above = log_below - x
    log_cdf = torch.logsumexp(log_weights + log_below, dim=-1)
    log_rest = torch.logsumexp(log_weights + log_above, dim=-1)
    log_density = torch.logsumexp(log_weights + log_below + log_above - log_scales, dim=-1)
    return log_cdf - log_rest, log_density - log_cdf - log_rest


FIRST_POINTS = 6  # components whose quantiles the inverse looks at first, beside the lowest and the highest
MOST_ITERATIONS = 60  # each cuts the bracket to a third at least, so float64 has none left to cut after 40


def mixture_logit_inverse(
    y: Tensor, log_weights: Tensor, means: Tensor, log_scales: Tensor, *, tolerance: float | None = None
) -> tuple[Tensor, int]:
    """The v with mixture_logit(v) = y, and how many evaluations the slowest element took; not differentiable itself.

    The components' own quantiles bracket the mixture's, so a root is always enclosed. Each iteration evaluates the
    inverse function's cubic through both ends of the bracket (values and slopes: fourth order near the root) and the
    points that cut it in three (so that it shrinks however crooked the function). An element is done when its Newton
    correction is below `tolerance` (relative above 1; default 16 roundings of the type) and is not evaluated again.
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
    bracket = narrowed(points, values - target, slopes)
    found, todo = torch.empty_like(target[:, 0]), torch.arange(len(target), device=y.device)
    iterations = 1
    while True:
        low, high = bracket[0].unbind(-1)
        guess = root_guess(*bracket)
        tried = torch.stack([guess, (2 * low + high) / 3, (low + 2 * high) / 3], dim=-1)
        values, slopes = mixture_logit(tried, *parameters)
        values = values - target
        iterations += 1
        # on a flat stretch exp(-slope) overflows, and a value of exactly 0 times it would be NaN
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
        bracket = narrowed(*joined)


def narrowed(points: Tensor, values: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The nearest of some points (N, P) on either side of the root, where the values change sign: three (N, 2)."""
    is_left = values <= 0
    left = torch.where(is_left, points, -math.inf).argmax(dim=-1, keepdim=True)
    right = torch.where(is_left, math.inf, points).argmin(dim=-1, keepdim=True)
    # rounding may put an end of the first bracket on the wrong side of the root: it is an end all the same
    left = torch.where(is_left.any(-1, keepdim=True), left, points.argmin(dim=-1, keepdim=True))
    right = torch.where(is_left.all(-1, keepdim=True), points.argmax(dim=-1, keepdim=True), right)
    ends = torch.cat([left, right], dim=-1)
    return points.gather(-1, ends), values.gather(-1, ends), slopes.gather(-1, ends)


def root_guess(points: Tensor, values: Tensor, log_slopes: Tensor) -> Tensor:
    """Where an increasing function crosses zero, by the cubic of its inverse through two points (..., 2)."""
    (low, high), (value_low, value_high) = points.unbind(-1), values.unbind(-1)
    rise = value_high - value_low
    t = torch.where(rise > 0, -value_low / rise.clamp(min=torch.finfo(rise.dtype).tiny), 0.5)
    step_low, step_high = torch.exp(-log_slopes).unbind(-1)
    cubic = (1 + 2 * t) * (1 - t) ** 2 * low + t**2 * (3 - 2 * t) * high
    cubic = cubic + rise * t * (1 - t) * ((1 - t) * step_low - t * step_high)
    chord = low + t * (high - low)  # where the cubic leaves the bracket
    chosen = torch.where((cubic > low) & (cubic < high), cubic, chord)
    return torch.minimum(torch.maximum(chosen, low), high)
