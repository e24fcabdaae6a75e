"""Fill the gaps of a text with a model of tokens.

An autoregressive model searches through the whole text. A masked diffusion sees the text on both sides: it fills one
word with gaps after another, tries several numbers of tokens for each, and shows the tokens of a word from left to
right.
"""

import itertools
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.data.tokens import TokenVocabulary
from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Advance, ignored
from unordinal.tasks.filling import Fill, Filled, Proposal
from unordinal.tasks.patterns import BEAM, DROP, FREE, Book, Match, Pattern, matches
from unordinal.tasks.reading import read

MOST_LETTERS = 600  # of a text that is filled
LETTERS_PER_TOKEN = 4  # of words that are still to be filled
MOST_TOKENS = 6  # of a run of words with gaps that is filled
KEPT = 4  # fillings of the words before that are carried on


def fill_tokens(model: CategoricalModel, vocabulary: TokenVocabulary, asked: Fill) -> Filled:
    """Fill the gaps of a text, of which one may have any length, with the likeliest tokens that match the rest."""
    if model.stepper is None and model.conditional is None:
        raise ValueError(
            "filling gaps with tokens needs an autoregressive model (arm), or a masked diffusion (absorbing)"
        )
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
        if model.stepper is not None:
            found = matches(model.stepper, Book(vocabulary.pieces, pattern), advance=advance)
        else:
            found = masked_matches(model, vocabulary, pattern, advance=advance)
    if not found:
        raise ValueError("no tokens were found that match the text; give more of it, or another length of the gaps")
    proposals = []
    for match in found[: asked.num]:
        text = match.text.decode("utf-8", errors="replace")
        start = len(parts[0])
        middle, around = text[start : start + match.size], text[:start] + text[start + match.size :]
        single = [letter for letter, known in zip(around, pattern.letters, strict=False) if known == FREE]
        filled = iter(single)
        whole = "".join(next(filled) if c == asked.gap else middle if c == asked.any_gap else c for c in asked.text)
        proposals.append(Proposal(whole, "".join(single) if not rest else middle, match.log_prob))
    of_gaps = "exact of the tokens (order left-to-right), of the words with gaps given their numbers of tokens"
    return Filled(tuple(proposals), of_gaps if model.stepper is None else "exact of the tokens, of the whole")


def letters_of(text: str, gap: str, vocabulary: TokenVocabulary) -> list[int]:
    """Return the letters of a text, as the model reads them, with FREE for each gap."""
    stand_in = read(text.replace(gap, "x"), vocabulary)
    seen = stand_in if stand_in.plain is None else stand_in.plain
    if stand_in.plain is None:
        return [FREE if c == gap else byte for c in text for byte in c.encode()]
    symbols = seen.vocabulary.decode(seen.x)
    return [FREE if text[start] == gap else ord(s) for (start, _), s in zip(seen.spans, symbols, strict=True)]


@dataclass(frozen=True)
class Span:
    """A run of words with gaps, or of words without.

    Args:
        letters: the letters as bytes, FREE where one is missing.
        gap: the number of letters before the gap of any length; None if there is none here.
    """

    letters: tuple[int, ...]
    gap: int | None

    @property
    def is_open(self) -> bool:
        """Whether something is to be filled here."""
        return FREE in self.letters or self.gap is not None


def spans(pattern: Pattern) -> list[Span]:
    """Cut a pattern before the spaces at which words with gaps begin or end.

    >>> cut = spans(Pattern((*b"on the ", FREE, *b"at and on"), gap=None))
    >>> [(len(part.letters), part.is_open) for part in cut]
    [(6, False), (4, True), (7, False)]
    """
    letters, gap, found = pattern.letters, pattern.gap, list[Span]()
    cuts = [0, *(place for place in range(1, len(letters)) if letters[place] == ord(" ")), len(letters)]
    for start, end in itertools.pairwise(cuts):
        has_gap = gap is not None and (start < gap <= end or gap == start == 0)
        word = Span(letters[start:end], gap - start if gap is not None and has_gap else None)
        if found and found[-1].is_open == word.is_open:
            before = found.pop()
            inside = before.gap if word.gap is None else word.gap + len(before.letters)
            word = Span(before.letters + word.letters, inside)
        found.append(word)
    return found


class MaskedStepper:
    """Shows the tokens of a run of words from left to right, given those on both sides.

    Args:
        model: a masked diffusion.
        left: the tokens before, (L,).
        size: the number of tokens of the words.
        right: the tokens after, -1 where they are not known yet, (R,).
    """

    def __init__(self, model: CategoricalModel, left: Tensor, size: int, right: Tensor):
        assert model.conditional is not None
        self.model, self.log_probs_given = model, model.conditional.log_probs
        self.left, self.size, self.right = left, size, right

    def first_state(self, num: int, cond: Tensor | None = None) -> Tensor:
        """Return the tokens shown so far: none."""
        return torch.zeros(num, 0, dtype=torch.long, device=device_of(self.model))

    def next_log_probs(self, before: Tensor | None, state: Tensor) -> tuple[Tensor, Tensor]:
        shown = state if before is None else torch.cat([state, before.unsqueeze(1)], dim=1)
        num, place = shown.shape
        left, right = (part.to(shown).expand(num, -1) for part in (self.left, self.right))
        hidden = torch.full((num, self.size - place), -1, device=shown.device)
        (log_p,) = self.log_probs_given(torch.cat([left, shown, hidden, right], dim=1), [len(self.left) + place])
        return log_p, shown

    def select_state(self, state: Tensor, index: Tensor) -> Tensor:
        return state[index]


def masked_matches(
    model: CategoricalModel,
    vocabulary: TokenVocabulary,
    pattern: Pattern,
    *,
    beam: int = BEAM,
    drop: float = DROP,
    kept: int = KEPT,
    advance: Advance = ignored,
) -> list[Match]:
    """Return likely texts that match a pattern under a masked diffusion, the best first.

    Args:
        model: the diffusion.
        vocabulary: its tokens.
        pattern: the pattern.
        beam: how many hypotheses are kept for each number of tokens.
        drop: how far below the best one a hypothesis is dropped, in nats for each letter that both have.
        kept: how many fillings of the words before are carried on.
        advance: receives the part of the search that is done; all of it is 1.
    """
    parts = spans(pattern)
    tokens = [None if part.is_open else encoded(bytes(part.letters), vocabulary) for part in parts]
    guessed = [guessed_tokens(part) if part.is_open else 0 for part in parts]
    room = model.event_shape[0] - sum(len(t) if t is not None else n for t, n in zip(tokens, guessed, strict=True))
    if room < 0:
        raise ValueError(
            f"the text has about {model.event_shape[0] - room} tokens, and this model sees {model.event_shape[0]};"
            " fill it in parts"
        )
    found, num_open = [Match(b"", 0.0, 0)], sum(part.is_open for part in parts)
    for index, part in enumerate(parts):
        if not part.is_open:
            found = [Match(match.text + bytes(part.letters), match.log_prob, match.size) for match in found]
            continue
        later = [torch.full((n,), -1) if t is None else t for t, n in zip(tokens, guessed, strict=True)][index + 1 :]
        right = torch.cat([torch.zeros(0, dtype=torch.long), *later])
        book, longer = Book(vocabulary.pieces, Pattern(part.letters, part.gap)), dict[bytes, Match]()
        sizes = range(1, min(MOST_TOKENS, most_tokens(part), guessed[index] + room) + 1)
        for before in found[:kept]:
            left = encoded(before.text, vocabulary)
            for size in sizes:
                stepper = MaskedStepper(model, left, size, right)
                for match in matches(stepper, book, num_tokens=size, beam=beam, drop=drop):
                    text, score = before.text + match.text, before.log_prob + match.log_prob
                    if text not in longer or score > longer[text].log_prob:
                        longer[text] = Match(text, score, before.size + match.size)
                advance(1 / (num_open * min(kept, len(found)) * len(sizes)))
        found = sorted(longer.values(), key=lambda match: -match.log_prob)
    return found


def encoded(text: bytes, vocabulary: TokenVocabulary) -> Tensor:
    """Return the tokens of a text given as bytes."""
    return vocabulary.encode(text.decode("utf-8", errors="surrogateescape"))


def guessed_tokens(part: Span) -> int:
    """Return a guess of the number of tokens of words that are not filled yet."""
    return max(1, round(len(part.letters) / LETTERS_PER_TOKEN))


def most_tokens(part: Span) -> int:
    """Return the largest number of tokens that is tried for words with gaps."""
    return MOST_TOKENS if part.gap is not None else max(2, 1 + len(part.letters) // 2)
