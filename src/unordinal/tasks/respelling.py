"""Correct what people mistype: missing, added, replaced and swapped letters, by a search for what was meant.

A search proposes clean texts. Their alignment with the typed text gives the words that differ, and each of them is
weighed against the word as it was typed and against what other clean texts have in its place.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from unordinal.progress import Advance
from unordinal.tasks.channel import Channel
from unordinal.tasks.misspelling import symbols_of
from unordinal.tasks.reading import Reading
from unordinal.tasks.search import Found, search
from unordinal.tasks.weighing import Letters, Place, Scale, padded
from unordinal.tasks.windows import Window, windows

SIZE = 192  # typed letters of a window
MARGIN = 32  # how far from the edge of a window a correction counts
AT_ONCE = 8  # windows that are searched at a time, which bounds the memory
WEIGHED = 8  # clean texts whose words are weighed against each other


@dataclass(frozen=True)
class Suggestion:
    """A correction of a word, or of a letter.

    Args:
        start: where the correction begins in the text.
        old: what was found there.
        new: what is suggested.
        confidence: how sure the model is, from 0 to 1, compared with the text as it was typed and with other
            suggestions for the same place. It is too high for texts with few errors, and for rare names.
    """

    start: int
    old: str
    new: str
    confidence: float


@dataclass(frozen=True)
class Step:
    """A step of an alignment: clean letters [i, i_end) were typed as letters [j, j_end)."""

    i: int
    i_end: int
    j: int
    j_end: int


@dataclass(frozen=True)
class Piece:
    """A word of an alignment, or a run of changes if the alphabet has no space: its steps."""

    steps: tuple[Step, ...]

    @property
    def clean(self) -> slice:
        """The positions of the clean text."""
        return slice(self.steps[0].i, self.steps[-1].i_end)

    @property
    def typed(self) -> slice:
        """The positions of the typed text."""
        return slice(self.steps[0].j, self.steps[-1].j_end)


def respell(
    scale: Scale, wide: Channel, reading: Reading, is_fixed: Tensor, *, beam: int, advance: Advance
) -> list[Suggestion]:
    """Return suggestions for a text, in its order, whatever their confidence.

    Args:
        scale: what suggestions are weighed with.
        wide: the channel of the search, with more errors than that of the scale, so that more is found to be weighed.
        reading: the text as the model sees it.
        is_fixed: positions (L,) that are known to be right.
        beam: how many hypotheses the search keeps.
        advance: receives the number of letters done.
    """
    model = scale.model
    if model.stepper is None:
        raise ValueError("`method` beam needs an autoregressive model (arm); use `method` pass with a diffusion")
    if " " in symbols_of(reading.vocabulary):
        reading, is_fixed = after_space(reading, is_fixed)
    size = min(SIZE, model.event_shape[0])
    cut = windows(len(reading.x), size, min(MARGIN, (size - 1) // 2))
    found: list[Suggestion] = []
    done = 0  # where the last suggestion ends
    for begin in range(0, len(cut), AT_ONCE):
        some = cut[begin : begin + AT_ONCE]
        typed, fixed = (padded([v[w.start : w.stop] for w in some]) for v in (reading.x, is_fixed.long()))
        tell = partial(tell_part, advance, sum(w.last - w.first for w in some))
        searched = search(model, wide, typed, beam=beam, is_fixed=fixed == 1, advance=tell)
        for window, clean in zip(some, searched, strict=True):
            for suggestion in suggestions_of(scale, reading, is_fixed, window, clean):
                if suggestion.start >= done:
                    found.append(suggestion)
                    done = suggestion.start + len(suggestion.old)
    return found


def after_space(reading: Reading, is_fixed: Tensor) -> tuple[Reading, Tensor]:
    """Return a text with a space before it that stays as it is, so that models know that a word begins there."""
    x = torch.cat([torch.tensor([symbols_of(reading.vocabulary).index(" ")]), reading.x])
    first = torch.ones(1, dtype=torch.bool)
    is_fixed, is_free = torch.cat([first, is_fixed]), torch.cat([~first, reading.is_free])
    return replace(reading, x=x, spans=((0, 0), *reading.spans), is_free=is_free), is_fixed


def tell_part(advance: Advance, whole: float, part: float) -> None:
    """Report progress: `part`, a fraction of 1, of `whole` units of work."""
    advance(whole * part)


def suggestions_of(
    scale: Scale, reading: Reading, is_fixed: Tensor, window: Window, found: Found
) -> Iterator[Suggestion]:
    """Yield the suggestions that begin in the part of a window that counts."""
    if not found.texts:
        return
    typed, fixed = (v[window.start : window.stop] for v in (reading.x, is_fixed))
    space = symbols_of(reading.vocabulary).find(" ")
    texts = found.texts[:WEIGHED]
    cut = [pieces_of(text, typed, scale.channel, fixed, space) for text in texts]
    elsewhere = [{(p.typed.start, p.typed.stop): p for p in pieces} for pieces in cut]
    places, sources = list[Place](), list[dict[Letters, tuple[Piece, Tensor]]]()
    for best in cut[0]:
        as_typed: Letters = tuple(typed[best.typed].tolist())
        known: dict[Letters, tuple[Piece, Tensor]] = {}
        for text, pieces in zip(texts, elsewhere, strict=True):
            piece = pieces.get((best.typed.start, best.typed.stop))
            if piece is not None:
                known.setdefault(tuple(text[piece.clean].tolist()), (piece, text))
        known.pop(as_typed, None)
        if known:
            places.append(Place(best.typed, (*known, as_typed)))
            sources.append(known)
    if not places:
        return
    for place, known, shares in zip(places, sources, scale.weigh(typed, fixed, places), strict=True):
        if window.first <= window.start + place.typed.start < window.last:
            letters = max(known, key=lambda r: shares.get(r, 0.0))
            start, old, new = written(reading, window, *known[letters])
            yield Suggestion(start, old, new, shares.get(letters, 0.0))


def pieces_of(clean: Tensor, typed: Tensor, channel: Channel, is_fixed: Tensor, space: int) -> list[Piece]:
    """Return the words of an alignment, without the spaces between them; with `space` -1, only runs of changes."""
    pieces: list[Piece] = []
    steps: list[Step] = []
    for step in aligned(clean, typed, channel, is_fixed):
        is_copy = step.i_end - step.i == step.j_end - step.j == 1 and clean[step.i] == typed[step.j]
        if not is_copy or space not in (-1, int(clean[step.i])):
            steps.append(step)
        elif steps:
            pieces.append(Piece(tuple(steps)))
            steps = []
    return [*pieces, Piece(tuple(steps))] if steps else pieces


def aligned(clean: Tensor, typed: Tensor, channel: Channel, is_fixed: Tensor) -> list[Step]:
    """Return the likeliest alignment of a clean text (N,) with a typed one (M,)."""
    n, m, k = len(clean), len(typed), channel.num_classes
    y, x, free = clean.numpy(), typed.numpy(), ~is_fixed.numpy()
    with np.errstate(divide="ignore"):
        insert, delete, substitute, swap = (
            -np.log(v.numpy()) for v in (channel.insert, channel.delete, channel.substitute, channel.swap)
        )
    cost = np.full((n + 1, m + 1), math.inf)
    step = np.zeros((n + 1, m + 1), np.int8)  # clean letters of the last step * 3 + typed letters
    cost[0, 0] = 0.0
    for i in range(n + 1):
        if i:
            before = y[i - 2] if i > 1 else k
            wrong = np.where(x == y[i - 1], 0.0, np.where(free, substitute[y[i - 1], x], math.inf))
            ways = [(1, 0, cost[i - 1] + delete[before, y[i - 1]]), (1, 1, np.r_[math.inf, cost[i - 1, :-1] + wrong])]
            if i > 1 and m > 1:
                is_swap = (x[:-1] == y[i - 1]) & (x[1:] == y[i - 2]) & free[:-1] & free[1:]
                price = np.where(is_swap, cost[i - 2, :-2] + swap[y[i - 2], y[i - 1]], math.inf)
                ways.append((2, 2, np.r_[math.inf, math.inf, price]))
            for read, wrote, price in ways:
                is_better = price < cost[i]
                cost[i] = np.where(is_better, price, cost[i])
                step[i] = np.where(is_better, 3 * read + wrote, step[i])
        added = np.where(free, insert[y[i - 1] if i else k, x], math.inf)
        for _ in range(2):  # at most two insertions at a place
            price = np.r_[math.inf, cost[i, :-1] + added]
            is_better = price < cost[i]
            cost[i] = np.where(is_better, price, cost[i])
            step[i] = np.where(is_better, 1, step[i])
    if not math.isfinite(cost[n, m]):
        raise ValueError("the channel cannot have turned one text into the other")
    found, i, j = [], n, m
    while (i, j) != (0, 0):
        read, wrote = divmod(int(step[i, j]), 3)
        found.append(Step(i - read, i, j - wrote, j))
        i, j = i - read, j - wrote
    return found[::-1]


def written(reading: Reading, window: Window, piece: Piece, clean: Tensor) -> tuple[int, str, str]:
    """Return where a piece begins in the text, what is there, and what is suggested, in the case of what is there."""
    spans, first = reading.spans, window.start + piece.typed.start
    start = spans[first][0] if first < len(spans) else len(reading.text)
    last = window.start + piece.typed.stop - 1
    old = reading.text[start : spans[last][1]] if last >= first else ""
    is_shouted = len(old) > 1 and old.isupper()
    parts = []
    for step in piece.steps:
        for place in range(step.i, step.i_end):
            symbol = reading.symbol(int(clean[place]))
            if step.j == step.j_end:  # a letter that was left out
                can_shout = is_shouted and symbol.upper() not in reading.vocabulary.symbols
                parts.append(symbol.upper() if can_shout else symbol)
                continue
            position = window.start + step.j + place - step.i
            there = reading.text[slice(*spans[position])]
            is_kept = int(reading.x[position]) == int(clean[place])
            parts.append(there if is_kept else reading.in_case_of(there, symbol))
    new = "".join(parts)
    if old[:1].isupper() and old[1:] == old[1:].lower() and new[:1].upper() not in reading.vocabulary.symbols:
        new = new[:1].upper() + new[1:].lower()
    return start, old, new
