"""The search for texts that match a pattern, compared with all sequences of tokens."""

import itertools
import math

import pytest
import torch
from mistyping import causal_model

from unordinal.tasks.patterns import FREE, Book, Pattern, matches

PIECES = [b"a", b"b", b"ab", b" ", b"ba"]


def all_matches(pattern: str, longest: int) -> dict[bytes, float]:
    """Return the log-probability of the likeliest tokens of every text that matches a regular expression."""
    import re

    model = causal_model(len(PIECES), 8)
    assert model.stepper is not None
    found: dict[bytes, float] = {}
    for size in range(1, longest + 1):
        x = torch.tensor(list(itertools.product(range(len(PIECES)), repeat=size)))
        log_p = model.stepper.log_probs(x).sum(dim=1)
        for row, score in zip(x.tolist(), log_p.tolist(), strict=True):
            text = b"".join(PIECES[token] for token in row)
            if re.fullmatch(pattern, text.decode()):
                found[text] = max(found.get(text, -math.inf), score)
    return found


@torch.no_grad()
@pytest.mark.parametrize(
    ("pattern", "expression"),
    [
        (Pattern((97, FREE, 98, FREE)), "a[a-z ]b[a-z ]"),
        (Pattern((97, 98)), "ab"),
        (Pattern((97, FREE, 32, 97)), "a[a-z ] a"),
    ],
)
def test_a_full_beam_finds_every_text_with_its_likeliest_tokens(pattern: Pattern, expression: str) -> None:
    stepper = causal_model(len(PIECES), 8).stepper
    assert stepper is not None
    expected = all_matches(expression, len(pattern.letters))
    found = matches(stepper, Book(PIECES, pattern), beam=10**6, drop=math.inf)
    assert {match.text: pytest.approx(match.log_prob) for match in found} == expected
    assert [match.log_prob for match in found] == pytest.approx(sorted(expected.values(), reverse=True))


@torch.no_grad()
def test_a_gap_of_any_length_is_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unordinal.tasks.patterns.LONGEST_GAP", 3)
    stepper, pattern = causal_model(len(PIECES), 8).stepper, Pattern((97, 98), gap=1)
    assert stepper is not None
    expected = all_matches("a[a-z ]{0,3}b", 5)
    found = matches(stepper, Book(PIECES, pattern), beam=10**6, drop=math.inf)
    assert {match.text: pytest.approx(match.log_prob) for match in found} == expected
    assert all(len(match.text) == 2 + match.size for match in found)
    best = matches(stepper, Book(PIECES, pattern), beam=8)
    assert best[0].text == found[0].text


def test_tokens_must_match_all_their_letters() -> None:
    book = Book(PIECES, Pattern((97, FREE, 98)))
    assert {token for token, _, _ in book.after(0, 0)} == {0, 2}
    assert {token for token, _, _ in book.after(2, 0)} == {1}
    assert book.after(3, 0) == []
