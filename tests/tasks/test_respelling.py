"""Alignments, the case of suggestions, and their confidences."""

import itertools

import pytest
import torch
from mistyping import causal_model, random_channel

from unordinal.api import load
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import ignored
from unordinal.tasks.misspelling import typing_channel
from unordinal.tasks.reading import read
from unordinal.tasks.respelling import after_space, aligned, pieces_of, respell, written
from unordinal.tasks.weighing import Scale
from unordinal.tasks.windows import Window

TEXT8 = Vocabulary.text8()


def respelt(typed: str, clean: str) -> list[tuple[int, str, str]]:
    """Return what the words of a typed text become if a clean text was meant."""
    reading = read(typed, TEXT8)
    channel, y = typing_channel(TEXT8, 0.01), TEXT8.encode(clean).long()
    pieces = pieces_of(y, reading.x, channel, ~reading.is_free, 0)
    window = Window(0, len(reading.x), 0, len(reading.x))
    found = [written(reading, window, piece, y) for piece in pieces]
    return [(start, old, new) for start, old, new in found if old != new]


@pytest.mark.parametrize(
    ("typed", "clean", "expected"),
    [
        ("the goverment fell", "the government fell", [(4, "goverment", "government")]),
        ("The GOVERMENT, 1999", "the government ", [(4, "GOVERMENT", "GOVERNMENT")]),
        ("Teh cat", "the cat", [(0, "Teh", "The")]),
        ("Htis is", "this is", [(0, "Htis", "This")]),
        ("Nglish", "english", [(0, "Nglish", "English")]),
        ("a lettter", "a letter", [(2, "lettter", "letter")]),
        ("alot of it", "a lot of it", [(0, "alot", "a lot")]),
        ("in to it", "into it", [(0, "in to", "into")]),
        ("Zoé acted", "zoe acted", []),
        ("Zoé actd", "zoe acted", [(4, "actd", "acted")]),
        ("Naïvly", "naively", [(0, "Naïvly", "Naïvely")]),
    ],
)
def test_words_come_back_in_their_case(typed: str, clean: str, expected: list[tuple[int, str, str]]) -> None:
    assert respelt(typed, clean) == expected


def test_an_alignment_has_the_least_cost_and_covers_both_texts() -> None:
    channel = random_channel(3)
    clean, typed = torch.tensor([0, 1, 2, 2, 0]), torch.tensor([1, 0, 2, 0, 0])
    steps = aligned(clean, typed, channel, torch.zeros(5, dtype=torch.bool))
    assert (steps[0].i, steps[0].j, steps[-1].i_end, steps[-1].j_end) == (0, 0, 5, 5)
    assert all(a.i_end == b.i and a.j_end == b.j for a, b in itertools.pairwise(steps))


def test_suggestions_name_what_is_there_and_what_is_likelier() -> None:
    vocabulary = Vocabulary("chars", "ab")
    model, channel = causal_model(2, 12), random_channel(2, seed=5)
    scale, number = Scale(model, channel, vocabulary), 0
    for letters in itertools.product("ab", repeat=5):
        text = "".join(letters)
        reading = read(text, vocabulary)
        for s in respell(scale, channel, reading, ~reading.is_free, beam=8, advance=ignored):
            assert 0 <= s.confidence <= 1
            assert text[s.start :].startswith(s.old)
            assert s.old != s.new
            number += 1
    assert number > 5


def test_nothing_is_put_before_the_first_word() -> None:
    model = load("pretrained:text8-arm").model
    reading = read("the cat sat on the mat", TEXT8)
    longer, is_fixed = after_space(reading, ~reading.is_free)
    assert TEXT8.decode(longer.x) == " the cat sat on the mat"
    assert is_fixed.tolist() == [True, *[False] * 22]
    scale = Scale(model, typing_channel(TEXT8, 0.01), TEXT8)
    found = respell(scale, typing_channel(TEXT8, 0.1), reading, ~reading.is_free, beam=16, advance=ignored)
    assert not any(s.new[:1] == " " for s in found)


def test_long_texts_are_cut_into_windows_that_agree() -> None:
    run = load("pretrained:text8-arm")
    sentence = "the goverment of the country was begining to recieve the letters of the people "
    found = run.correct(sentence * 5)
    assert (
        found.text
        == sentence.replace("goverment", "government").replace("begining", "beginning").replace("recieve", "receive")
        * 5
    )
