"""Vocabularies and what a model must know of its data: encoded, decoded, shown, saved and refused."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from unordinal.data.spec import DataSpec
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


@pytest.mark.parametrize(
    "spec",
    [
        DataSpec("text", 27, (8,), Vocabulary.text8(), "abc", (3, 2, 1)),
        DataSpec("bytes", 256, (8,), Vocabulary.bytes()),
        DataSpec("maps", 2, (2, 4), categories=(("sea", "#0000ff"), ("land", "#00ff00"))),
    ],
)
def test_what_is_saved_as_json_comes_back_the_same(spec: DataSpec) -> None:
    assert DataSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_examples_are_shown_as_text_as_numbers_and_as_rows_of_numbers() -> None:
    assert DataSpec("text", 27, (2,), Vocabulary.text8()).show(torch.tensor([8, 9])) == "hi"
    assert DataSpec("bare", 12, (3,)).show(torch.tensor([3, 11, 12])) == "3 11 \ufffd"
    maps = DataSpec("maps", 12, (2, 2))
    assert maps.is_map
    assert maps.show(torch.tensor([[3, 11], [0, 12]])) == " 3 11\n 0  \ufffd"
    assert maps.show(torch.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])) == " 1  2\n 3  4\n\n 5  6\n 7  8"


def test_shapes_that_a_network_cannot_take_are_refused() -> None:
    rows, maps = DataSpec("rows", 3, (6,)), DataSpec("maps", 3, (6, 8))
    rows.require_sequences()
    maps.require_maps(2)
    with pytest.raises(ValueError, match=r"takes sequences.* the examples of maps have shape \(6, 8\)"):
        maps.require_sequences()
    with pytest.raises(ValueError, match=r"takes maps.* the examples of rows have shape \(6,\)"):
        rows.require_maps(2)
    with pytest.raises(ValueError, match="multiples of 4; the maps of maps are 6 x 8"):
        maps.require_maps(4)


def test_units() -> None:
    assert DataSpec("x", 27, (8,), Vocabulary.text8()).unit == "bits per character"
    assert DataSpec("x", 256, (8,), Vocabulary.bytes()).unit == "bits per byte"
    assert DataSpec("x", 8, (4, 4)).unit == "bits per pixel"
    assert DataSpec("x", 91, (2,)).unit == "bits per dimension"
