"""Fill the gaps of a sequence: proposals of a masked diffusion, ranked by how likely they make the whole."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from unordinal.data.spec import Vocabulary
from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Progress, Watcher, silent, watching
from unordinal.tasks.drawing import draw
from unordinal.tasks.reading import Reading, read

DRAWS_PER_PROPOSAL = 8  # so that equal draws still leave enough different ones
SHARP = 0.5  # the temperature of half of the draws: likelier proposals, less variety
BATCH = 32


@dataclass(frozen=True)
class Proposal:
    """A way to fill the gaps.

    Args:
        text: the whole text with the gaps filled.
        filling: what stands in the gaps, one after another.
        log_prob: the log-probability, in nats, by which proposals are ranked.
    """

    text: str
    filling: str
    log_prob: float


@dataclass(frozen=True)
class Filled:
    """Proposals, the likeliest first.

    Args:
        proposals: the proposals.
        kind: which log-probability they have, such as "exact, of the whole" or "exact (order left-to-right), of the
            gaps".
    """

    proposals: tuple[Proposal, ...]
    kind: str

    @property
    def text(self) -> str:
        """The text with the gaps filled by the likeliest proposal."""
        return self.proposals[0].text


Judge = Callable[[Tensor], Tensor]
"""Returns the log-probabilities (N,) of whole sequences (N, L)."""


def read_gaps(text: str, gap: str, vocabulary: Vocabulary) -> tuple[Reading, Tensor]:
    """Read a text with gaps; also return which symbols are known, (L,), with -1 in the gaps.

    >>> reading, known = read_gaps("a _at", "_", Vocabulary.text8())
    >>> known.tolist()
    [1, 0, -1, 1, 20]
    """
    if len(gap) != 1:
        raise ValueError(f"`gap` must be a single character, got {gap!r}")
    letter = next(symbol for symbol in vocabulary if symbol.isalpha())
    if gap in (vocabulary.symbols or ()) and gap.isalpha():
        raise ValueError(f"`gap` {gap!r} is a letter of the alphabet; choose a sign that the text does not have")
    if gap not in text:
        raise ValueError(f"the text has no gap; write {gap!r} for every symbol that is missing")
    reading = replace(read(text.replace(gap, letter), vocabulary), text=text)
    is_gap = torch.tensor([text[start:end][:1] == gap for start, end in reading.spans], dtype=torch.bool)
    if bool(is_gap.all()):
        raise ValueError("the text is all gaps; give some of it, or draw samples instead")
    return reading, torch.where(is_gap, -1, reading.x)


def fill(
    model: CategoricalModel,
    known: Tensor,
    *,
    num: int = 5,
    judge: Judge | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[Tensor, Tensor]:
    """Propose ways to fill the free positions of an example.

    Args:
        model: a model that keeps `known` positions; an absorbing diffusion does so best.
        known: the classes of an example, (*D), with -1 where they are free.
        num: how many different proposals; there may be fewer.
        judge: the log-probabilities by which proposals are ranked; by default the model's own, when it shows the free
            positions from left to right.
        seed: the seed of the draws.
        progress: is told how many draws are done.

    Returns:
        The proposals, (N, *D), the likeliest first, and their log-probabilities (N,) in nats.
    """
    if num < 1:
        raise ValueError(f"`num` must be at least 1, got {num}")
    if not model.abilities.known:
        raise ValueError(f"filling gaps needs a diffusion or an autoregressive model, not {type(model).__name__}")
    free = int((known < 0).sum())
    draws = min(num * DRAWS_PER_PROPOSAL, max(2, model.num_classes) ** min(free, 8))
    parts = [
        draw(
            model, -(-draws // 2), seed=seed + index, batch_size=BATCH, progress=progress,
            known=known, event_shape=tuple(known.shape), temperature=temperature,
        ).x
        for index, temperature in enumerate((1.0, SHARP))
    ]  # fmt: skip
    found = torch.unique(torch.cat(parts), dim=0)
    with progress("Ranking", len(found)) as advance, watching(Watcher(advance)):  # a judge reports to the watcher
        scores = torch.cat([(judge or own_judge(model, known))(part) for part in found.split(BATCH)])
    best = scores.argsort(descending=True)[:num]
    return found[best], scores[best]


def own_judge(model: CategoricalModel, known: Tensor) -> Judge:
    """Return a judge that gives the free positions their log-probabilities from left to right."""
    is_known = (known >= 0).flatten()
    places = torch.arange(len(is_known))
    order = torch.cat([places[is_known], places[~is_known]])

    @torch.no_grad()
    def judge(x: Tensor) -> Tensor:
        x = x.to(device_of(model))
        if model.abilities.orders:
            return model.log_prob_of_order(x, order, num_given=int(is_known.sum())).double().cpu()
        if model.is_exact:
            return model.elbo(x).double().cpu()
        raise ValueError("this model cannot rank proposals; give a `judge`, such as an autoregressive model")

    return judge


def judge_of(model: CategoricalModel) -> Judge:
    """Return the exact log-probability under a model as a judge."""

    @torch.no_grad()
    def judge(x: Tensor) -> Tensor:
        return model.elbo(x.to(device_of(model))).double().cpu()

    return judge


def fill_text(
    model: CategoricalModel,
    text: str,
    vocabulary: Vocabulary,
    *,
    gap: str = "_",
    num: int = 5,
    judge: CategoricalModel | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Filled:
    """Fill the gaps of a text; the arguments are those of `fill` and `read_gaps`.

    The model sees as much of the text around the gaps as it was trained with. `judge` is an exact model over the same
    alphabet.
    """
    reading, known = read_gaps(text, gap, vocabulary)
    start, stop = seen_part(known, model.event_shape[0])
    x, scores = fill(
        model,
        known[start:stop],
        num=num,
        judge=None if judge is None else judge_of(judge),
        seed=seed,
        progress=progress,
    )
    gaps = torch.nonzero(known < 0).flatten().tolist()
    proposals = []
    for row, score in zip(x, scores.tolist(), strict=True):
        changes = {place: int(row[place - start]) for place in gaps}
        filling = "".join(reading.symbol(changes[place]) for place in gaps)
        proposals.append(Proposal(with_gaps_filled(reading, changes), filling, score))
    exact = "exact, of the whole" if judge is not None or model.is_exact else "exact (order left-to-right), of the gaps"
    return Filled(tuple(proposals), exact)


def with_gaps_filled(reading: Reading, changes: dict[int, int]) -> str:
    """Return the text with the symbols of its gaps."""
    letters = list(reading.text)
    for place, value in changes.items():
        letters[reading.spans[place][0]] = reading.symbol(value)
    return "".join(letters)


def seen_part(known: Tensor, size: int) -> tuple[int, int]:
    """Return the part of a sequence that a model sees: all gaps, with as much around them as fits."""
    length = len(known)
    if length <= size:
        return 0, length
    gaps = torch.nonzero(known < 0).flatten()
    first, last = int(gaps[0]), int(gaps[-1]) + 1
    if last - first > size:
        raise ValueError(
            f"the gaps lie {last - first:,} symbols apart, and this model sees {size} at a time; fill them in parts"
        )
    start = min(max(0, (first + last - size) // 2), length - size)
    return start, start + size
