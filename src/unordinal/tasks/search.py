"""Search for the clean texts behind typed ones, under an autoregressive model and a channel of errors."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Advance, ignored
from unordinal.tasks.channel import MOST_DELETIONS, Channel, Paths, Typed

BEAM = 16
DROP = 12.0  # nats below the best clean prefix at which one is dropped
BONUS = 1.3  # nats that a typed letter costs on average, for ranking prefixes that explain different numbers of them
BAND = 17  # numbers of typed letters that are considered for a clean prefix


@dataclass(frozen=True)
class Found:
    """Clean texts behind a typed one.

    Args:
        texts: the classes of each, the best text first.
        scores: log p(clean) + log q(typed | clean) of each, of shape (N,).
    """

    texts: list[Tensor]
    scores: Tensor


@torch.no_grad()
def search(
    model: CategoricalModel,
    channel: Channel,
    x: Tensor,
    *,
    beam: int = BEAM,
    is_fixed: Tensor | None = None,
    drop: float = DROP,
    band: int | None = BAND,
    advance: Advance = ignored,
) -> list[Found]:
    """Search for the clean texts that make typed ones likeliest, letter by letter.

    A hypothesis is the beginning of a clean text, with the probabilities that the channel has turned it into each
    beginning of the typed text, so that all alignments are summed. With a beam, a band and a drop that keep all
    hypotheses, the result holds every clean text, with exact scores. All texts end after any letter with the same
    probability, unless the model has ends.

    Args:
        model: a model with a `stepper`.
        channel: how errors are made.
        x: typed classes, of shape (B, M); NO_LETTER after the end of a shorter text.
        beam: how many hypotheses are kept for a typed text.
        is_fixed: positions (B, M) that are known to be right; None for none.
        drop: how far below the best one a hypothesis is dropped, in nats.
        band: how many numbers of typed letters are considered for a hypothesis; None for all.
        advance: receives the part of the search that is done; all of it is 1.

    Returns:
        What was found for each typed text, at most `beam` clean ones.
    """
    if beam < 1:
        raise ValueError(f"`beam` must be at least 1, got {beam}")
    stepper = model.stepper
    assert stepper is not None
    num, k, device = len(x), model.num_classes, device_of(model)
    window = torch.arange(num)
    typed = Typed(channel, x, is_fixed, band)
    paths, prior = Paths.first(typed, window), torch.zeros(num, dtype=torch.float64)
    texts = torch.zeros(num, 0, dtype=torch.long)
    finished: list[list[tuple[float, Tensor]]] = [[] for _ in range(num)]
    best_finished = torch.full((num,), -math.inf, dtype=torch.float64)
    state, before, longest = stepper.first_state(num), None, (MOST_DELETIONS + 1) * x.shape[1] + MOST_DELETIONS
    longest = min(longest, model.event_shape[0]) if model.ends else longest
    every, told = torch.arange(k), 0.0
    for size in range(longest + 1):
        log_p, state = (None, state) if model.ends and size == longest else stepper.next_log_probs(before, state)
        log_p = log_p if log_p is None else log_p.double().cpu()
        ended = paths.log_finished() + prior
        if model.ends and log_p is not None:
            ended = ended + log_p[:, k]
        best_finished.scatter_reduce_(0, paths.window, ended, "amax")
        for row in torch.nonzero(ended >= best_finished[paths.window] - drop).flatten().tolist():
            if ended[row] > -math.inf:
                finished[int(paths.window[row])].append((float(ended[row]), texts[row]))
        if size == longest or log_p is None:
            break
        longer = paths.extended(every.expand(len(texts), k))
        score = prior.unsqueeze(1) + log_p[:, :k] + longer.log_reached(BONUS, size)
        row, letter = kept(score, paths.window, best_finished + BONUS * (typed.sizes - size), drop, beam)
        if len(row) == 0:
            break
        prior = prior[row] + log_p[row, letter]
        paths = longer.chosen(row, letter)
        texts, before = torch.cat([texts[row], letter.unsqueeze(1)], dim=1), letter.to(device)
        state = stepper.select_state(state, row.to(device))
        part = min(1.0, size / max(1, x.shape[1]))
        advance(part - told)
        told = part
    advance(1 - told)
    return [best_of(found, beam) for found in finished]


def kept(score: Tensor, window: Tensor, ended: Tensor, drop: float, beam: int) -> tuple[Tensor, Tensor]:
    """Return the row and the letter of the extensions that are kept.

    Args:
        score: the scores of extensions, of shape (R, K).
        window: the typed text of each row, (R,).
        ended: the score of the best clean text that has ended, for each typed text, (B,).
        drop: the distance from the best at which one is dropped.
        beam: how many are kept for each typed text.
    """
    best = ended.scatter_reduce(0, window, score.max(dim=1).values, "amax")
    row, letter = torch.nonzero((score >= (best[window] - drop).unsqueeze(1)) & (score > -math.inf), as_tuple=True)
    order = torch.argsort(score[row, letter], descending=True)
    order = order[torch.argsort(window[row[order]], stable=True)]  # by typed text, the best first
    row, letter = row[order], letter[order]
    group = window[row]
    first = torch.searchsorted(group, group)  # where the extensions of the same typed text begin
    is_kept = torch.arange(len(row)) - first < beam
    return row[is_kept], letter[is_kept]


def best_of(found: list[tuple[float, Tensor]], beam: int) -> Found:
    """Return the best clean texts, the best one first."""
    ordered = sorted(found, key=lambda pair: -pair[0])[:beam]
    return Found([text for _, text in ordered], torch.tensor([score for score, _ in ordered], dtype=torch.float64))
