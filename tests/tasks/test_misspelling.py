"""The channel of people who type."""

import torch

from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.channel import substitutions
from unordinal.tasks.misspelling import typing_channel

TEXT8 = Vocabulary.text8()


def letter(symbol: str) -> int:
    return TEXT8.symbols.index(symbol)


def test_common_mistakes_are_likelier_than_rare_ones() -> None:
    channel = typing_channel(TEXT8, 0.01)
    assert channel.substitute[letter("e"), letter("a")] > 10 * channel.substitute[letter("e"), letter("q")]
    assert channel.substitute[letter("k"), letter("l")] > channel.substitute[letter("k"), letter("a")]  # a neighbour
    assert channel.delete[letter("s"), letter("s")] > channel.delete[letter("s"), letter("h")]  # one of two
    assert channel.insert[letter("l"), letter("l")] > 10 * channel.insert[letter("l"), letter("q")]


def test_the_rate_of_edits_is_about_the_one_asked_for() -> None:
    text = TEXT8.encode("it was the best of times and it was the worst of times")
    for rate in (0.001, 0.01):
        channel = typing_channel(TEXT8, rate)
        before, letters = text[:-1], text[1:]
        edits = channel.insert.sum(dim=1)[letters] + channel.substitute.sum(dim=1)[letters]
        edits = edits + channel.delete[before, letters] + channel.swap[before, letters]
        assert 0.5 * rate < float(edits.mean()) < 2 * rate


def test_an_alphabet_that_people_do_not_type_has_substitutions_only() -> None:
    found, expected = typing_channel(Vocabulary("letters", "ACGT"), 0.1), substitutions(4, 0.1)
    for name in ("insert", "delete", "substitute", "swap"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


def test_bytes_of_longer_characters_are_only_copied() -> None:
    channel = typing_channel(Vocabulary.bytes(), 0.01)
    longer = torch.arange(128, 256)
    assert not channel.substitute[longer].any()
    assert not channel.swap[longer].any()
    assert not channel.delete[:, longer].any()
