"""The one estimator behind every score: draws of a model's bound, or of its importance-weighted bound."""

import math

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, evaluating, given_labels
from unordinal.numerics import Rng, uniform
from unordinal.progress import Advance, ignored


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


@torch.no_grad()
def importance_bound(
    model: CategoricalModel,
    x: Tensor,
    k: int,
    *,
    rows: int,
    cond: Tensor | None = None,
    generator: Rng = None,
    advance: Advance = ignored,
) -> tuple[Tensor, Tensor]:
    """Return the log of the mean of k importance weights of each example, and its variance by the delta method.

    Both are (B,) float64. At most `rows` copies of examples are passed to the model at a time, whatever k is.
    """
    if model.weights is None:
        raise ValueError(f"{type(model).__name__} has no importance weights; use its elbo")
    total = torch.full((len(x),), -math.inf, dtype=torch.float64)
    squares = total.clone()
    draws = max(1, rows // len(x))
    with evaluating(model):
        for start in range(0, k, draws):
            num = min(draws, k - start)
            copies = x.repeat(num, *([1] * (x.dim() - 1)))
            labels = given_labels(None if cond is None else cond.repeat(num, 1))
            log_w = model.weights(copies, generator=generator, **labels).double().cpu().view(num, len(x))
            total = torch.logaddexp(total, torch.logsumexp(log_w, dim=0))
            squares = torch.logaddexp(squares, torch.logsumexp(2 * log_w, dim=0))
            advance(num * len(x))
    return total - math.log(k), (torch.exp(squares - 2 * total) - 1 / k).clamp(min=0)
