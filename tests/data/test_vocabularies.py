"""Vocabularies: texts become classes and texts again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unordinal.data.vocabularies import Vocabulary


@given(st.text(alphabet="abc xyz", min_size=1))
def test_text8_round_trip(text: str) -> None:
    vocabulary = Vocabulary.text8()
    assert vocabulary.decode(vocabulary.encode(text)) == text


@given(st.text(min_size=1))
def test_bytes_round_trip(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    vocabulary = Vocabulary.bytes()
    assert vocabulary.decode(vocabulary.encode(text)) == text


@given(st.sets(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50), st.data())
def test_characters_are_numbered_in_the_order_of_the_vocabulary(symbols: set[str], data: st.DataObject) -> None:
    """Against a dictionary, in an order that is not sorted."""
    vocabulary = Vocabulary("chars", "".join(data.draw(st.permutations(sorted(symbols)))))
    text = data.draw(st.text(alphabet=sorted(symbols)))
    number = {symbol: index for index, symbol in enumerate(vocabulary)}
    assert vocabulary.encode(text).tolist() == [number[symbol] for symbol in text]
    assert vocabulary.decode(vocabulary.encode(text)) == text
    assert len(vocabulary) == len(symbols)


def test_symbols_that_are_not_in_the_vocabulary_are_named_with_their_position() -> None:
    with pytest.raises(
        ValueError, match=r"expected a-z and space, got 'B' at position 2 \(2 such .*use `alphabet` chars"
    ):
        Vocabulary.text8().encode("a Bat Z")
    with pytest.raises(ValueError, match="the 3 characters of the vocabulary, got 'é' at position 11"):
        Vocabulary("chars", "abc").encode_points(np.array([97, ord("é")], np.uint32), 10)


def test_codes_that_mean_nothing_show_as_the_replacement_character() -> None:
    assert Vocabulary.text8().decode([1, 27, -1, 2]) == "a\ufffd\ufffdb"
    assert Vocabulary.bytes().decode([97, 300, 0xFF, 98]) == "a\ufffd\ufffdb"
    assert [*Vocabulary.bytes()][:2] == ["0x00", "0x01"]
    assert len(Vocabulary.bytes()) == 256
