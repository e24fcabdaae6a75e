"""Vocabularies and what a model must know of its data: encoded, decoded, shown, saved and refused."""

import json

import pytest
import torch

from unordinal.data.spec import DataSpec
from unordinal.data.vocabularies import Vocabulary


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
