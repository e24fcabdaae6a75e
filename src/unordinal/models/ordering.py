"""Likelihoods of a masked diffusion that draws positions in an order: a given one, or one that its sampler chooses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unordinal.checks import check_classes
from unordinal.diffusion.ordered import Ordered
from unordinal.model import evaluating
from unordinal.nets.positions import can_choose
from unordinal.numerics import full_precision
from unordinal.progress import current_watcher

if TYPE_CHECKING:
    from unordinal.models.diffusion import Diffusion


def log_prob_of_order(model: "Diffusion", x: Tensor, order: Tensor, *, num_given: int, cond: Tensor | None) -> Tensor:
    """Return the log-probability of x when positions are shown in an order; see `Diffusion.log_prob_of_order`."""
    noise, size = model.noise, x[0].numel()
    if noise.mask is None or model.net_reads_time:
        raise ValueError("only noise with a mask and a network that does not read the time have orders of positions")
    check_classes(model, x)
    cond, x = model.checked_cond(cond, len(x)), x.long()
    order = order.to(x.device).expand(len(x), size)
    if not torch.equal(order.sort(dim=1).values, torch.arange(size, device=x.device).expand_as(order)):
        raise ValueError(f"an order has each of the {size} positions once")
    total = model.log_length(x, cond) if num_given == 0 else torch.zeros(len(x), device=x.device)
    rank = order.argsort(dim=1).view(x.shape)  # when each position is shown
    for turn in range(num_given, size):
        current_watcher().advance(0)  # a watcher may raise here to stop the work
        z = noise.with_ends(torch.where(rank < turn, x, noise.mask), x)
        at = rank == turn if noise.pad is None else (rank == turn) & (x != noise.pad)
        total = total + log_probs_at(model, z, x, cond, at).flatten(1).sum(dim=1)
    return total


def log_probs_at(model: "Diffusion", z: Tensor, x: Tensor, cond: Tensor | None, at: Tensor) -> Tensor:
    """Return the log-probabilities of classes x given z, 0 where `at` is false; all (B, *D)."""
    classes, t = model.noise.classes, torch.ones(len(x))
    if not can_choose(model.net, z):
        log_p = classes.log_prob(model.evaluated_logits(z, t, cond), model.noise.inside(x))
        return torch.where(at, log_p, 0.0)
    given = {"at": at} if cond is None else {"at": at, "cond": cond}
    with evaluating(model):
        logits = full_precision(model.net(z, model.noise.network_time(t), **given))  # (M, K)
    log_p = classes.log_prob(logits, x[at])
    return log_p.new_zeros(x.shape).masked_scatter(at, log_p)


@torch.no_grad()
def log_prob_of_sampler(
    model: "Diffusion", x: Tensor, sampler: Ordered, *, known: Tensor | None, cond: Tensor | None
) -> Tensor:
    """Return the exact log-probability of x under a sampler; see `Diffusion.log_prob_of_sampler`."""
    if model.orders is None:
        raise ValueError("only noise with a mask and a network that does not read the time have such likelihoods")
    check_classes(model, x)
    x, cond = x.long(), model.checked_cond(cond, len(x))
    total, given = torch.zeros(len(x), device=x.device), known
    if model.noise.pad is not None:
        given = torch.where(x == model.noise.pad, x, -1 if known is None else known)
        total = model.log_length(x, cond) if known is None else total
    for part in sampler.followed(model.denoiser.predictor(cond), model.noise, x, given):
        current_watcher().advance(0)  # a watcher may raise here to stop the work
        total = total + part
    return total


@torch.no_grad()
def log_probs_given(
    model: "Diffusion", known: Tensor, places: Sequence[int], *, cond: Tensor | None = None
) -> list[Tensor]:
    """Return the log-probabilities (B, K) of some positions given known ones (B, L), -1 elsewhere, by one call."""
    assert model.noise.mask is not None
    z = torch.where(known < 0, model.noise.mask, known)
    logits = model.evaluated_logits(z, torch.ones(len(z)), model.checked_cond(cond, len(z)))
    return [torch.log_softmax(model.classes.at(logits, place), dim=-1) for place in places]
