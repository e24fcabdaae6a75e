"""The one estimator behind every score: draws of a model's bound, or of its importance-weighted bound."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, evaluating, given_labels
from unordinal.numerics import Rng, uniform
from unordinal.progress import Advance, ignored

LEAST_EFFECTIVE, LARGEST_SHARE = 100.0, 0.05  # of importance weights that are even enough for an upper bound


@torch.no_grad()
def bound(
    model: CategoricalModel,
    x: Tensor,
    *,
    cond: Tensor | None = None,
    draws: int = 1,
    positions: Tensor | None = None,
    generator: Rng = None,
    advance: Advance = ignored,
) -> Tensor:
    """Draw the bound of every example, without dropout.

    Args:
        model: the model; an exact one gives log P(x) in each draw.
        x: classes, of shape (B, *D).
        cond: labels, of shape (B, J), for models that were trained with labels.
        draws: how many draws of each example.
        positions: for diffusions, where in time each draw is, (draws, B) in [0, 1); by default the draws of an example
            are spread evenly over all times.
        generator: the random number generator, on the device of x; default: torch's global one.
        advance: receives the number of examples after every draw.

    Returns:
        Nats, of shape (draws, B), in float64 on the CPU.

    >>> import unordinal
    >>> bound(unordinal.arm(num_classes=4, length=6), torch.zeros(2, 6, dtype=torch.long), draws=3).shape
    torch.Size([3, 2])
    """
    found = []
    if model.times is not None and positions is None:
        device = torch.device("cpu") if generator is None else generator.device
        offset = uniform((len(x),), device, generator).cpu().double()
        positions = (torch.arange(draws, dtype=torch.float64).unsqueeze(1) + offset) / draws
    with evaluating(model):
        for number in range(draws):
            if model.times is not None and positions is not None:
                values = model.times.elbo_at(x, positions[number], generator, **given_labels(cond))
            else:
                values = model.elbo(x, generator=generator, **given_labels(cond))
            found.append(values.double().cpu())
            advance(len(x))
    return torch.stack(found)


@dataclass(frozen=True)
class WeightSums:
    """Sums over importance weights in log space, for each example and each factor of its probability.

    Args:
        halves: the sums of the weights of the first and of the second half of the draws, (2, B, F).
        squares: the sums of the squared weights, (B, F).
        largest: the largest weights, (B, F).
        k: the number of draws.
    """

    halves: Tensor
    squares: Tensor
    largest: Tensor
    k: int

    @property
    def total(self) -> Tensor:
        """The sums of all weights, (B, F)."""
        return torch.logsumexp(self.halves, dim=0)

    @property
    def lower(self) -> Tensor:
        """The importance-weighted bound on log P(x), which is in the mean below it: (B,)."""
        return (self.total - math.log(self.k)).sum(dim=1)

    @property
    def variance(self) -> Tensor:
        """The variance of `lower` by the delta method, (B,)."""
        return (torch.exp(self.squares - 2 * self.total) - 1 / self.k).clamp(min=0).sum(dim=1)

    @property
    def upper(self) -> Tensor:
        """A bound that is in the mean above log P(x), (B,): log a + E[w] / a - 1 for any a.

        Each half of the draws gives the numbers a for the other half; the mean of both is returned.
        """
        sizes = torch.tensor([-(-self.k // 2), self.k // 2], dtype=torch.float64)
        means = self.halves - sizes.log().view(2, 1, 1)
        other = means.flip(0)
        return (other + torch.expm1(means - other)).mean(dim=0).sum(dim=1)

    @property
    def effective(self) -> Tensor:
        """The effective number of draws of the least even factor, (B,)."""
        return torch.exp(2 * self.total - self.squares).amin(dim=1)

    @property
    def share(self) -> Tensor:
        """The share of the largest weight among all, of the least even factor, (B,)."""
        return torch.exp(self.largest - self.total).amax(dim=1)


@torch.no_grad()
def weight_sums(
    model: CategoricalModel,
    x: Tensor,
    k: int,
    *,
    rows: int,
    cond: Tensor | None = None,
    generator: Rng = None,
    advance: Advance = ignored,
) -> WeightSums:
    """Draw k importance weights of each example (B, *D), and of each factor of its probability where a model has some.

    At most `rows` copies of examples are passed to the model at a time, whatever k is.
    """
    if model.weights is None:
        raise ValueError(f"{type(model).__name__} has no importance weights; use its elbo")
    draw, first = model.weight_factors or model.weights, -(-k // 2)
    halves, squares, largest = (torch.full((), -math.inf, dtype=torch.float64) for _ in range(3))
    draws = max(1, rows // len(x))
    with evaluating(model):
        for start in range(0, k, draws):
            num = min(draws, k - start)
            copies = x.repeat(num, *([1] * (x.dim() - 1)))
            labels = given_labels(None if cond is None else cond.repeat(num, 1))
            log_w = draw(copies, generator=generator, **labels).double().cpu().view(num, len(x), -1)
            parts = log_w.tensor_split([min(max(first - start, 0), num)])
            halves = torch.logaddexp(halves, torch.stack([torch.logsumexp(part, dim=0) for part in parts]))
            squares = torch.logaddexp(squares, torch.logsumexp(2 * log_w, dim=0))
            largest = torch.maximum(largest, log_w.amax(dim=0))
            advance(num * len(x))
    return WeightSums(halves, squares, largest, k)


def importance_bound(model: CategoricalModel, x: Tensor, k: int, **settings: Any) -> tuple[Tensor, Tensor]:
    """Return the importance-weighted bound of k draws of each example, and its variance by the delta method.

    Both are (B,) float64; the settings are those of `weight_sums`.
    """
    sums = weight_sums(model, x, k, **settings)
    return sums.lower, sums.variance
