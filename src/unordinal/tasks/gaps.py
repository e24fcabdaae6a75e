"""Fill a gap of any length, by fillings of all lengths that are ranked by the probability of the whole line."""

import math
from typing import Any

import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.data.tokens import TokenVocabulary
from unordinal.data.vocabularies import Vocabulary
from unordinal.model import CategoricalModel
from unordinal.tasks.filling import MOST_ENUMERATED, Fill, Filled, Proposal, fill, fill_text
from unordinal.tasks.token_gaps import fill_tokens

LONGEST_GAP = 64  # symbols
EACH_LENGTH, PARTICLES = 2, 8  # proposals of each length, and candidates of each draw
MOST_TRIED = 4096  # ways to fill a gap that are tried one by one


def fill_gaps(model: CategoricalModel, spec: DataSpec, asked: Fill, judge: CategoricalModel | None = None) -> Filled:
    """Fill the gaps of a text, of which one may have any length; `fill_text` describes the arguments."""
    if isinstance(spec.vocabulary, TokenVocabulary) and not spec.ends:
        return fill_tokens(model, spec.vocabulary, asked)
    if asked.any_gap not in asked.text or asked.any_gap == asked.gap or not (spec.ends or asked.gap not in asked.text):
        return fill_text(model, spec, asked, judge)
    if not spec.ends or model.stepper is None:
        raise ValueError(
            f"a gap of any length, {asked.any_gap}, is for autoregressive models of lines; write {asked.gap} per letter"
        )
    return fill_any_length(model, spec, asked)


def fill_any_length(model: CategoricalModel, spec: DataSpec, asked: Fill) -> Filled:
    """Fill one gap of any length, and gaps of one letter, of a line.

    The fillings of all lengths are ranked by the exact probability of the whole line with its end. If there are few,
    all are tried, and the probability of each given the rest of the line is exact; otherwise some are drawn.
    """
    vocabulary = spec.text_vocabulary("fill")
    before, *rest = asked.text.split(asked.any_gap)
    if len(rest) != 1:
        raise ValueError(f"there may be one gap of any length, got {len(rest)}; use {asked.gap} for single letters")
    parts = [known_of(part, asked.gap, vocabulary) for part in (before, rest[0])]
    fixed = sum(len(part) for part in parts)
    if not any(bool((part >= 0).any()) for part in parts):
        raise ValueError("the text is all gaps; give some of it, or draw samples instead")
    most = min(model.event_shape[0] - fixed, LONGEST_GAP)
    if most < 0:
        raise ValueError(f"the text has {fixed} letters; lines of this model have at most {model.event_shape[0]}")
    num_free = sum(int((part < 0).sum()) for part in parts)
    num_ways = sum(model.num_classes ** (num_free + size) for size in range(most + 1))
    is_whole = num_ways <= MOST_TRIED and most + fixed == model.event_shape[0]
    found: list[tuple[float, str, str]] = []
    with asked.progress("Filling", most + 1) as advance:
        for size in range(most + 1):
            known = torch.cat([parts[0], torch.full((size,), -1), parts[1]])
            every = MOST_TRIED if is_whole else MOST_ENUMERATED
            wanted: Any = {"num": every if is_whole else EACH_LENGTH, "particles": PARTICLES, "most_enumerated": every}
            x, scores = fill(model, known, seed=asked.seed, **wanted)
            for row, score in zip(x, scores.tolist(), strict=True):
                filling = "".join(vocabulary.decode(row[known < 0]))
                found.append((score, vocabulary.decode(row), filling))
            advance(1)
    found.sort(key=lambda proposal: -proposal[0])
    total = float(torch.tensor([score for score, _, _ in found], dtype=torch.float64).logsumexp(dim=0))
    shares = [math.exp(score - total) if is_whole else None for score, _, _ in found]
    proposals = [Proposal(text, filling, score, p) for (score, text, filling), p in zip(found, shares, strict=True)]
    how = "all fillings were tried" if is_whole else f"some fillings of up to {most} letters were tried"
    return Filled(tuple(proposals[: asked.num]), f"exact, of the whole line; {how}")


def known_of(text: str, gap: str, vocabulary: Vocabulary) -> Tensor:
    """Return the classes of a text, with -1 for each gap."""
    pieces = [vocabulary.encode(piece) for piece in text.split(gap)]
    parts = [part for piece in pieces for part in (torch.tensor([-1]), piece)]
    return torch.cat(parts[1:])
