"""Fill a gap of any length, by fillings of all lengths that are ranked by the probability of the whole line."""

import math
from typing import Any

import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary
from unordinal.model import CategoricalModel
from unordinal.tasks.filling import MOST_ENUMERATED, Fill, Filled, Proposal, fill, fill_text
from unordinal.tasks.patterns import FREE, Pattern, matches
from unordinal.tasks.reading import read

LONGEST_GAP = 64  # symbols
EACH_LENGTH, PARTICLES = 2, 8  # proposals of each length, and candidates of each draw
MOST_LETTERS = 600  # of a text that is filled with tokens
MOST_TRIED = 4096  # ways to fill a gap that are tried one by one


def fill_gaps(model: CategoricalModel, spec: DataSpec, asked: Fill, judge: CategoricalModel | None = None) -> Filled:
    """Fill the gaps of a text, of which one may have any length; `fill_text` describes the arguments."""
    if spec.vocabulary is not None and spec.vocabulary.kind == "tokens" and not spec.ends:
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


def fill_tokens(model: CategoricalModel, vocabulary: Vocabulary, asked: Fill) -> Filled:
    """Fill the gaps of a text, of which one may have any length, with the likeliest tokens that match the rest."""
    if model.stepper is None:
        raise ValueError("filling gaps with tokens needs an autoregressive model (arm)")
    if asked.gap not in asked.text and asked.any_gap not in asked.text:
        signs = f"{asked.gap!r} for every letter, or {asked.any_gap!r} for any number of them"
        raise ValueError(f"the text has no gap; write {signs}")
    before, *rest = asked.text.split(asked.any_gap)
    parts = [letters_of(part, asked.gap, vocabulary) for part in (before, *rest)]
    if len(parts) > 2:
        raise ValueError(f"there may be one gap of any length, got {len(rest)}; use {asked.gap} for single letters")
    pattern = Pattern(tuple(letter for part in parts for letter in part), len(parts[0]) if rest else None)
    if all(letter == FREE for letter in pattern.letters):
        raise ValueError("the text is all gaps; give some of it, or draw samples instead")
    if len(pattern.letters) > MOST_LETTERS:
        raise ValueError(f"the text has {len(pattern.letters):,} letters; at most {MOST_LETTERS} are filled at a time")
    with asked.progress("Filling", 1) as advance:
        found = matches(model, vocabulary.pieces, pattern, advance=advance)
    proposals = []
    for match in found[: asked.num]:
        text = match.text.decode("utf-8", errors="replace")
        start = len(parts[0])
        middle, around = text[start : start + match.size], text[:start] + text[start + match.size :]
        single = [letter for letter, known in zip(around, pattern.letters, strict=False) if known == FREE]
        filled = iter(single)
        whole = "".join(next(filled) if c == asked.gap else middle if c == asked.any_gap else c for c in asked.text)
        proposals.append(Proposal(whole, "".join(single) if not rest else middle, match.log_prob))
    return Filled(tuple(proposals), "exact of the tokens, of the whole")


def letters_of(text: str, gap: str, vocabulary: Vocabulary) -> list[int]:
    """Return the letters of a text, as the model reads them, with FREE for each gap."""
    stand_in = read(text.replace(gap, "x"), vocabulary)
    seen = stand_in if stand_in.plain is None else stand_in.plain
    if stand_in.plain is None:
        return [FREE if c == gap else byte for c in text for byte in c.encode()]
    symbols = seen.vocabulary.decode(seen.x)
    return [FREE if text[start] == gap else ord(s) for (start, _), s in zip(seen.spans, symbols, strict=True)]


def known_of(text: str, gap: str, vocabulary: Vocabulary) -> Tensor:
    """Return the classes of a text, with -1 for each gap."""
    pieces = [vocabulary.encode(piece) for piece in text.split(gap)]
    parts = [part for piece in pieces for part in (torch.tensor([-1]), piece)]
    return torch.cat(parts[1:])
