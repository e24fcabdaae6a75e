"""Noisy-channel beam search: the likeliest clean sequences behind an observed one, under an autoregressive model."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Advance, ignored


@dataclass(frozen=True)
class Beam:
    """The result of a beam search.

    Args:
        found: the sequences, of shape (B, M, L), the best first.
        scores: their scores (B, M); -inf for empty places.
        posterior: the probabilities of the clean classes of every position, (B, L, K).
    """

    found: Tensor
    scores: Tensor
    posterior: Tensor


@torch.no_grad()
def beam_search(
    model: CategoricalModel,
    x: Tensor,
    *,
    error_rate: float,
    beam: int,
    is_fixed: Tensor | None = None,
    advance: Advance = ignored,
) -> Beam:
    """Search for the clean sequences that make the observed ones likeliest.

    A clean sequence y scores log p(y) under the model plus log q(x | y) under the noise: every symbol is replaced with
    probability `error_rate` by another one, drawn uniformly. With a beam that holds all sequences, the best one is the
    exact maximum, and the posterior is exact. With a smaller beam, sequences that are dropped count in the posterior of
    the positions before with the share of the probability that they had when they were dropped; without them it would
    be far too confident.

    Args:
        model: a model with a `stepper`.
        x: observed classes, of shape (B, L).
        error_rate: the probability of an error.
        beam: how many sequences are kept at every position, M.
        is_fixed: positions (B, L) that are known to be right; None for none.
        advance: receives the part of the search that is done after every position; all of it is 1.
    """
    if beam < 1:
        raise ValueError(f"`beam` must be at least 1, got {beam}")
    stepper = model.stepper
    assert stepper is not None
    device, k = device_of(model), model.num_classes
    x = x.to(device)
    num, length = x.shape
    right, wrong = math.log1p(-error_rate), math.log(error_rate / (k - 1))
    scores = torch.full((num, beam), -math.inf, dtype=torch.float64, device=device)
    scores[:, 0] = 0.0  # one empty sequence
    found = torch.zeros((num, beam, 0), dtype=torch.long, device=device)
    posterior = torch.zeros((num, length, k), dtype=torch.float64, device=device)
    share = torch.ones((num, length, 1), dtype=torch.float64, device=device)  # of the sequences that are still kept
    state, before = stepper.first_state(num * beam), None
    for place in range(length):
        log_p, state = stepper.next_log_probs(before, state)
        channel = torch.full((num, k), wrong, dtype=torch.float64, device=device)
        channel.scatter_(1, x[:, place : place + 1], right)
        if is_fixed is not None:
            stays = torch.full_like(channel, -math.inf).scatter_(1, x[:, place : place + 1], 0.0)
            channel = torch.where(is_fixed.to(device)[:, place].unsqueeze(1), stays, channel)
        whole = scores.unsqueeze(-1) + log_p.view(num, beam, k).double() + channel.unsqueeze(1)  # (B, M, K)
        scores, picked = whole.flatten(1).topk(beam, dim=1)
        dropped = torch.softmax(whole.flatten(1), dim=1).scatter(1, picked, 0.0).view(num, beam, k)
        posterior[:, place] = dropped.sum(dim=1)
        posterior[:, :place] += share[:, :place] * class_weights(found, dropped.sum(dim=2), k)
        share[:, : place + 1] *= 1 - dropped.sum(dim=(1, 2)).view(num, 1, 1)
        slots = stable_slots(picked // k)
        scores, picked = scores.gather(1, slots), picked.gather(1, slots)
        parent, before = picked // k, (picked % k).flatten()
        index = (parent + beam * torch.arange(num, device=device).unsqueeze(1)).flatten()
        state = stepper.select_state(state, index)
        kept = found.flatten(0, 1)[index].view(num, beam, place)
        found = torch.cat([kept, before.view(num, beam, 1)], dim=2)
        advance(1 / length)
    posterior += share * class_weights(found, torch.softmax(scores, dim=1), k)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return Beam(found.gather(1, order.unsqueeze(-1).expand_as(found)), scores, posterior.cpu())


def class_weights(found: Tensor, weight: Tensor, num_classes: int) -> Tensor:
    """Return the weight of every class at every position, from sequences (B, M, L) with weights (B, M): (B, L, K)."""
    places = found.transpose(1, 2)  # (B, L, M)
    each = weight.unsqueeze(1).expand(places.shape).contiguous()
    return weight.new_zeros(*places.shape[:2], num_classes).scatter_add_(2, places, each)


def stable_slots(parent: Tensor) -> Tensor:
    """Return an order (B, M) of candidates in which most stay in the slot of their parent (B, M).

    Then most states of the model need not be copied from one position to the next.

    >>> stable_slots(torch.tensor([[2, 2, 0]])).tolist()
    [[2, 1, 0]]
    """
    num, beam = parent.shape
    place = torch.arange(beam, device=parent.device).expand(num, beam)
    first = torch.full_like(parent, beam).scatter_reduce(1, parent, place, "amin")  # of the children of each parent
    is_first = first.gather(1, parent) == place
    is_taken = first < beam  # slots whose first child stays
    free = is_taken.long().argsort(dim=1, stable=True)  # free slots, then taken ones
    rest = is_first.long().argsort(dim=1, stable=True)  # other children, then first ones
    slots = first.clone()
    slots.scatter_(1, free, torch.where(is_taken.gather(1, free), first.gather(1, free), rest))
    return slots
