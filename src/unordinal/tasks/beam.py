"""Noisy-channel beam search: the likeliest clean sequences behind an observed one, under an autoregressive model."""

import math

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Advance, ignored


@torch.no_grad()
def beam_search(
    model: CategoricalModel,
    x: Tensor,
    *,
    error_rate: float,
    beam: int,
    is_fixed: Tensor | None = None,
    advance: Advance = ignored,
) -> tuple[Tensor, Tensor]:
    """Search for the clean sequences that make the observed ones likeliest.

    A clean sequence y scores log p(y) under the model plus log q(x | y) under the noise: every symbol is replaced with
    probability `error_rate` by another one, drawn uniformly. With a beam that holds all sequences, this is the exact
    maximum.

    Args:
        model: a model with a `stepper`.
        x: observed classes, of shape (B, L).
        error_rate: the probability of an error.
        beam: how many sequences are kept at every position, M.
        is_fixed: positions (B, L) that are known to be right; None for none.
        advance: is told after every position how much of the search is done; all of it is 1.

    Returns:
        The sequences, of shape (B, M, L), the best first, and their scores (B, M); -inf for places that are empty.
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
        slots = stable_slots(picked // k)
        scores, picked = scores.gather(1, slots), picked.gather(1, slots)
        parent, before = picked // k, (picked % k).flatten()
        index = (parent + beam * torch.arange(num, device=device).unsqueeze(1)).flatten()
        state = stepper.select_state(state, index)
        kept = found.flatten(0, 1)[index].view(num, beam, place)
        found = torch.cat([kept, before.view(num, beam, 1)], dim=2)
        advance(1 / length)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return found.gather(1, order.unsqueeze(-1).expand_as(found)), scores


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


def beam_posterior(
    model: CategoricalModel,
    x: Tensor,
    *,
    error_rate: float,
    beam: int,
    is_fixed: Tensor | None = None,
    advance: Advance = ignored,
) -> Tensor:
    """Return the probabilities of the clean classes of every position, from the sequences that the beam holds last.

    The arguments are those of `beam_search`; the result has shape (B, L, K). The likeliest class of a position is that
    of the best sequence wherever the sequences agree.
    """
    found, scores = beam_search(model, x, error_rate=error_rate, beam=beam, is_fixed=is_fixed, advance=advance)
    weight = torch.softmax(scores, dim=1)  # (B, M)
    batch, _, length = found.shape
    posterior = weight.new_zeros(batch, length, model.num_classes)
    places = found.transpose(1, 2)  # (B, M, L) -> (B, L, M)
    return posterior.scatter_add_(2, places, weight.unsqueeze(1).expand_as(places).contiguous()).cpu()
