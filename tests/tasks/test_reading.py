"""Texts of people in the alphabets of models, and back."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.correcting import with_suggestions
from unordinal.tasks.reading import Reading, read
from unordinal.tasks.respelling import Suggestion

TEXT8, BYTES = Vocabulary.text8(), Vocabulary.bytes()
PROSE = Vocabulary("chars", " ,.ABCabcdefghijklmnopqrstuvwxyz")


def written(seen: Reading, changes: dict[int, int]) -> str:
    """Put changed classes, given by their position, into the text."""
    found = []
    for position, value in sorted(changes.items()):
        start, end = seen.spans[position]
        old = seen.text[start:end]
        new = old if value == int(seen.x[position]) else seen.in_case_of(old, seen.symbol(value))
        found.append(Suggestion(start, old, new, 1.0))
    return with_suggestions(seen.text, found)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_text_that_is_not_changed_comes_back(text: str) -> None:
    for vocabulary in (TEXT8, BYTES, PROSE):
        seen = read(text, vocabulary)
        assert written(seen, {}) == text
        assert len(seen.x) == len(seen.spans) == len(seen.is_free)
        assert all(0 <= value < len(vocabulary) for value in seen.x.tolist())
        covered = "".join(text[start:end] for start, end in seen.spans)
        assert covered == text  # everything stands for something, in order
        same = {i: int(value) for i, value in enumerate(seen.x) if seen.is_free[i]}
        assert written(seen, same) == text  # what is replaced by itself stays


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aB é9,\n\u0301ß中", max_size=30))
def test_only_what_may_change_changes(text: str) -> None:
    seen = read(text, TEXT8)
    free = torch.nonzero(seen.is_free).flatten().tolist()
    changed = written(seen, dict.fromkeys(free, 26))
    for (start, end), is_free in zip(seen.spans, seen.is_free.tolist(), strict=True):
        if not is_free:
            assert text[start:end] in changed
            assert text[start:end] != " "
    assert read(changed, TEXT8).x[free].tolist() == [26] * len(free)


@pytest.mark.parametrize(
    ("text", "shown", "free"),
    [
        ("Mexico City", "mexico city", "11111111111"),
        ("Été, 1999", "ete ", "1110"),
        ("e\u0301t", "et", "11"),
        ("a  b\n", "a b ", "1010"),
        (" a", " a", "11"),
        ("ß", " ", "0"),
        ("שלום", " ", "0"),
        ("a\x00b", "a b", "101"),
        ("", "", ""),
    ],
)
def test_what_a_model_of_text8_sees(text: str, shown: str, free: str) -> None:
    seen = read(text, TEXT8)
    assert TEXT8.decode(seen.x) == shown
    assert "".join(str(int(value)) for value in seen.is_free) == free


def test_letters_keep_their_case_and_signs_of_the_alphabet_are_characters() -> None:
    assert written(read("Teh", TEXT8), {1: 8, 2: 5}) == "The"
    assert written(read("ÉT", TEXT8), {0: 1}) == "AT"
    assert written(read("Do", TEXT8), {0: 0}) == " o"
    seen = read("A, Z", PROSE)
    assert PROSE.decode(seen.x) == "A, z"
    assert bool(seen.is_free.all())
    assert written(seen, {0: PROSE.symbols.index("b")}) == "b, Z"  # the alphabet has both cases of this letter


def test_bytes_that_are_not_ascii_may_not_change() -> None:
    seen = read("né", BYTES)
    assert seen.is_free.tolist() == [True, False, False]
    assert written(seen, {0: ord("m")}) == "mé"


def test_an_alphabet_without_space_refuses_what_it_lacks() -> None:
    letters = Vocabulary("chars", "ACGT")
    assert letters.decode(read("acgT", letters).x) == "ACGT"
    with pytest.raises(ValueError, match="the alphabet of this model has no 'X'; it has 'ACGT'"):
        read("ACXT", letters)
