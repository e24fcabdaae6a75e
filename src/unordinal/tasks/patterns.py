"""Fill gaps with a model of tokens: a search for the likeliest tokens whose letters match a pattern.

A pattern is a text in which some letters are free, and in which there may be one gap of any length. Every way to write
a text with tokens is allowed, and the best one counts.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch

from unordinal.abilities import Steps
from unordinal.progress import Advance, ignored

LONGEST_GAP = 24  # letters of a gap of any length
BEAM = 48
DROP = 14.0  # nats below the best hypothesis at the same letter at which one is dropped
FREE = -1  # a letter that may be any of a-z


@dataclass(frozen=True)
class Pattern:
    """A text of which some letters are missing.

    Args:
        letters: the letters as bytes, FREE where one is missing.
        gap: the number of letters before the gap of any length; None if there is no such gap.
    """

    letters: tuple[int, ...]
    gap: int | None = None


@dataclass(frozen=True)
class Match:
    """A text that matches a pattern.

    Args:
        text: its bytes.
        log_prob: the log-probability of its tokens.
        size: the letters of the gap of any length.
    """

    text: bytes
    log_prob: float
    size: int


@torch.no_grad()
def matches(
    stepper: Steps,
    book: "Book",
    *,
    num_tokens: int | None = None,
    beam: int = BEAM,
    drop: float = DROP,
    advance: Advance = ignored,
) -> list[Match]:
    """Return the likeliest texts that match a pattern, the best first, at most `beam` of them.

    With a beam and a drop that keep all hypotheses, every text that matches is found with its likeliest tokens.

    Args:
        stepper: gives each token its probability given those before.
        book: the pattern, with the tokens that match it.
        num_tokens: the number of tokens of the text; by default any.
        beam: how many hypotheses are kept for each number of tokens.
        drop: how far below the best one a hypothesis is dropped, in nats for each letter that both have.
        advance: receives the part of the search that is done; all of it is 1.
    """
    letters, pieces = book.pattern.letters, book.all_pieces
    state, before = stepper.first_state(1), None
    rows: list[tuple[int, int, bytes]] = [(0, 0, b"")]  # letters of the pattern, letters of the gap, text
    scores, found, told, length = np.zeros(1), dict[bytes, Match](), 0.0, 0
    while rows and length != num_tokens:
        length += 1
        log_p, state = stepper.next_log_probs(before, state)
        values = log_p.double().cpu().numpy()
        longer: dict[tuple[int, int, bytes], tuple[float, int, int]] = {}
        for row, (place, size, text) in enumerate(rows):
            allowed = book.after(place, size)
            reached = scores[row] + values[row, [token for token, _, _ in allowed]]
            for index in np.flatnonzero(reached >= reached.max(initial=-math.inf) - drop):
                (token, after, larger), score = allowed[index], float(reached[index])
                key = (after, larger, text + pieces[token])
                if key not in longer or score > longer[key][0]:
                    longer[key] = (score, row, token)
        kept = best_of(longer, beam, drop)
        rows, parents, tokens, new = [], [], [], []
        for key in kept:
            place, size, text = key
            score, row, token = longer[key]
            is_whole = place == len(letters) and num_tokens in (None, length)
            if is_whole and (text not in found or score > found[text].log_prob):
                found[text] = Match(text, score, size)
            if place < len(letters) or book.may_grow(place, size):
                rows.append(key)
                parents.append(row)
                tokens.append(token)
                new.append(score)
        scores = np.array(new)
        if rows:
            before = torch.tensor(tokens, device=log_p.device)
            state = stepper.select_state(state, torch.tensor(parents, device=log_p.device))
            part = min(place for place, _, _ in rows) / max(1, len(letters))
            advance(max(0.0, part - told))
            told = max(told, part)
    advance(1 - told)
    return sorted(found.values(), key=lambda match: -match.log_prob)[:beam]


class Book:
    """The tokens that may follow at each place of a pattern.

    Args:
        pieces: the bytes that each token stands for.
        pattern: the pattern.
    """

    def __init__(self, pieces: list[bytes], pattern: Pattern):
        self.all_pieces, self.pattern, self.known = pieces, pattern, dict[tuple[int, int], list[tuple[int, int, int]]]()
        self.pieces = [(token, piece) for token, piece in enumerate(pieces) if piece]

    def may_grow(self, place: int, size: int) -> bool:
        """Return whether the gap of any length is here and may have more letters."""
        return place == self.pattern.gap and size < LONGEST_GAP

    def after(self, place: int, size: int) -> list[tuple[int, int, int]]:
        """Return the tokens that match from a place on, each with the place and the size of the gap after it."""
        if (place, size) not in self.known:
            found = [(token, *end) for token, piece in self.pieces for end in self.ends(piece, place, size)]
            self.known[place, size] = found
        return self.known[place, size]

    def ends(self, piece: bytes, place: int, size: int) -> set[tuple[int, int]]:
        """Return where the letters of a token may lead: the place, and the letters of the gap of any length."""
        ends = {(place, size)}
        for letter in piece:
            ends = {end for begin in ends for end in self.step(letter, *begin)}
        return ends

    def step(self, letter: int, place: int, size: int) -> list[tuple[int, int]]:
        """Return where one letter may lead."""
        letters, is_plain = self.pattern.letters, 97 <= letter <= 122 or letter == 32
        found = []
        if place < len(letters) and (letters[place] == letter or (letters[place] == FREE and is_plain)):
            found.append((place + 1, size))
        if self.may_grow(place, size) and is_plain:
            found.append((place, size + 1))
        return found


def best_of(
    longer: dict[tuple[int, int, bytes], tuple[float, int, int]], beam: int, drop: float
) -> list[tuple[int, int, bytes]]:
    """Return the hypotheses to keep: the best at each number of letters, then the best of all."""
    if not longer or math.isinf(drop):
        return sorted(longer, key=lambda key: -longer[key][0])[:beam]
    best: dict[int, float] = {}
    for (_, _, text), (score, _, _) in longer.items():
        best[len(text)] = max(best.get(len(text), -math.inf), score)
    near = [key for key, (score, _, _) in longer.items() if score >= best[len(key[2])] - drop]
    # of different numbers of letters, those with fewer nats per letter are better
    each = max(1e-3, -max(score / len(key[2]) for key, (score, _, _) in longer.items()))
    return sorted(near, key=lambda key: -(longer[key][0] + each * len(key[2])))[:beam]
