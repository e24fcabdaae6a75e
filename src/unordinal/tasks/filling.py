"""Fill the gaps of a sequence: proposals of a masked diffusion, ranked by how likely they make the whole."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import torch
from torch import Tensor

from unordinal.checks import as_classes
from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Progress, Watcher, silent, watching
from unordinal.settings import PYTHON_ONLY, Range, Request, Seed
from unordinal.tasks.asking import Sample
from unordinal.tasks.drawing import draw, sample
from unordinal.tasks.reading import Reading, read

DRAWS_PER_PROPOSAL = 8  # so that equal draws still leave enough different ones
SHARP = 0.5  # the temperature of half of the draws: likelier proposals, less variety
BATCH = 32
MOST_ENUMERATED = 64  # ways to fill the gaps that are ranked one by one instead of drawn
MOST_RANKED = 16  # missing pixels of a map whose proposals are ranked, which takes a network call for each


@dataclass(frozen=True)
class Fill(Request):
    """Fill the gaps of a text."""

    text: Annotated[str, Range(1, served=10_000)]
    """The text, with a sign for every missing letter, so that a gap has a fixed length."""
    gap: Annotated[str, Range(1, 1)] = "_"
    """The sign of a missing letter."""
    any_gap: Annotated[str, Range(1, 1)] = "*"
    """Models of lines and of tokens: the sign of a gap of any length, of which there may be one."""
    num: Annotated[int, Range(1, served=20)] = 5
    """How many proposals."""
    seed: Seed = 0
    """Seed of the draws."""
    judge: Annotated[Any, PYTHON_ONLY] = None
    """The run of an exact model over the same alphabet, by whose probability proposals are ranked; without it, they are
    ranked by the run's own probability of what it filled in."""


@dataclass(frozen=True)
class FillMap(Request):
    """Fill the holes of a map."""

    map: Annotated[list[list[int]] | Any, Range(1, served=256)]
    """Rows of classes, with -1 where they are missing."""
    num: Annotated[int, Range(1, served=8)] = 4
    """How many proposals."""
    steps: Annotated[int, Range(1, served=1000)] = 64
    """Network calls of a proposal; at most one for each missing pixel. Holes of at most 16 pixels need more, since
    their proposals are ranked."""
    seed: Seed = 0
    """Seed of the draws."""


@dataclass(frozen=True)
class Proposal:
    """A way to fill the gaps.

    Args:
        text: the whole text with the gaps filled.
        filling: what stands in the gaps, one after another.
        log_prob: the log-probability, in nats, by which proposals are ranked.
        probability: that of the filling given the text around it, where all fillings were tried; else None.
    """

    text: str
    filling: str
    log_prob: float
    probability: float | None = None


@dataclass(frozen=True)
class Filled:
    """Proposals, the likeliest first.

    Args:
        proposals: the proposals.
        kind: which log-probability they have, such as "exact, of the whole", "exact, of the part that the model sees"
            or "exact (order left-to-right), of the gaps".
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
    if gap in (vocabulary.symbols or ()) and gap.isalnum():
        raise ValueError(f"`gap` {gap!r} is a letter of the alphabet; choose a sign that the text does not have")
    if gap not in text:
        raise ValueError(f"the text has no gap; write {gap!r} for every symbol that is missing")
    # any letter will do in a gap while the text is read; without letters, any symbol but those that runs consist of
    stand_in = next((symbol for symbol in vocabulary if symbol.isalpha()), vocabulary.decode([len(vocabulary) - 1]))
    stand_in = "x" if vocabulary.kind == "bytes" else stand_in
    reading = replace(read(text.replace(gap, stand_in), vocabulary), text=text)
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
    most_enumerated: int = MOST_ENUMERATED,
    particles: int = 32,
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
        most_enumerated: try all ways to fill the gaps, if there are at most this many.
        particles: the candidates of each draw of an autoregressive model.
        progress: receives the number of draws done.

    Returns:
        The proposals, (N, *D), the likeliest first, and their log-probabilities (N,) in nats.
    """
    if model.denoiser is None and model.stepper is None:
        raise ValueError(f"filling gaps needs a diffusion or an autoregressive model, not a {type(model).__name__}")
    free = int((known < 0).sum())
    every = max(2, model.num_classes) ** min(free, 32)
    draws = num * DRAWS_PER_PROPOSAL
    if every <= most_enumerated:  # all ways to fill the gaps
        ways = torch.tensor(list(itertools.product(range(model.num_classes), repeat=free)), dtype=torch.long)
        found = known.expand(len(ways), *known.shape).clone()
        found[:, known < 0] = ways
    else:
        given: Any = {} if model.stepper is None else {"particles": particles}
        given |= {"known": known, "event_shape": tuple(known.shape), "batch_size": BATCH, "progress": progress}
        parts = [
            draw(model, -(-draws // 2), seed=seed + index, temperature=temperature, **given).x
            for index, temperature in enumerate((1.0, SHARP))
        ]
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
        if model.orders is not None:
            return model.orders(x, order, num_given=int(is_known.sum())).double().cpu()
        if model.is_exact:
            return model.elbo(x).double().cpu()
        raise ValueError("this model cannot rank proposals; give an autoregressive model as `judge`")

    return judge


def judge_of(model: CategoricalModel) -> Judge:
    """Return a function that ranks proposals by their exact log-probability under a model."""

    @torch.no_grad()
    def judge(x: Tensor) -> Tensor:
        return model.elbo(x.to(device_of(model))).double().cpu()

    return judge


def fill_text(model: CategoricalModel, spec: DataSpec, asked: Fill, judge: CategoricalModel | None = None) -> Filled:
    """Fill the gaps of a text.

    The model sees as much of the text around the gaps as it was trained with.

    Args:
        model: the model.
        spec: the description of its data, which are text.
        asked: the request.
        judge: an exact model over the same alphabet, by whose probability proposals are ranked; without it, proposals
            are ranked by the model's own probability of what it filled in.
    """
    reading, known = read_gaps(asked.text, asked.gap, spec.text_vocabulary("fill"))
    start, stop = seen_part(known, model.event_shape[0])
    x, scores = fill(
        model,
        known[start:stop],
        num=asked.num,
        judge=None if judge is None else judge_of(judge),
        seed=asked.seed,
        progress=asked.progress,
    )
    gaps = torch.nonzero(known < 0).flatten().tolist()
    proposals = []
    for row, score in zip(x, scores.tolist(), strict=True):
        changes = {place: int(row[place - start]) for place in gaps}
        filling = "".join(reading.symbol(changes[place]) for place in gaps)
        proposals.append(Proposal(with_gaps_filled(reading, changes), filling, score))
    whole = "the whole" if stop - start == len(known) else "the part that the model sees"
    is_whole = judge is not None or model.is_exact
    return Filled(tuple(proposals), f"exact, of {whole}" if is_whole else "exact (order left-to-right), of the gaps")


def fill_map(model: CategoricalModel, spec: DataSpec, asked: FillMap) -> tuple[Tensor, Tensor | None]:
    """Fill the holes of a map.

    Returns:
        The proposals, (N, H, W). Where at most 16 pixels are missing, they are different and the likeliest comes first;
        then also their log-probabilities (N,) in nats. For larger holes they are draws, and None.
    """
    known = as_classes(asked.map, "map")
    if not spec.is_map:
        raise ValueError(f"`map` needs a model of maps; the examples of {spec.name} have shape {spec.event_shape}")
    if known.shape != torch.Size(spec.event_shape):
        sizes = (" x ".join(map(str, shape)) for shape in (spec.event_shape, known.shape))
        raise ValueError("the maps of this model have {} pixels, got {}".format(*sizes))
    model.checked_known(known, 1, known.shape)
    free = int((known < 0).sum())
    if free <= MOST_RANKED or model.denoiser is None:
        return fill(model, known, num=asked.num, seed=asked.seed, progress=asked.progress)
    steps = min(asked.steps, free)
    drawn = Sample(asked.num, known=known, steps=steps, seed=asked.seed, progress=asked.progress)
    return sample(model, spec, drawn).x, None


def proposals_of(x: Tensor, scores: Tensor | None) -> list[dict[str, Any]]:
    """Return maps and their log-probabilities as plain values."""
    values = [None] * len(x) if scores is None else scores.tolist()
    return [{"log_prob": value, "map": row.tolist()} for value, row in zip(values, x, strict=True)]


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
