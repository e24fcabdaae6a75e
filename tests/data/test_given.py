"""Arrays, tensors and lists that are given in Python."""

import numpy as np
import pytest
import torch

from unordinal.data import load_data, source_of
from unordinal.data.given import GivenSource, as_array


def parts(num_classes: int = 5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, num_classes, (n, 6)) for name, n in (("train", 50), ("val", 10), ("test", 7))}


def test_arrays_from_python() -> None:
    assert load_data(torch.arange(600).reshape(100, 6) % 3).spec.split_sizes == (90, 5, 5)
    assert load_data(parts()).spec.split_sizes == (50, 10, 7)
    with pytest.raises(ValueError, match="expected the keys train, val and test"):
        load_data({"train": np.zeros((3, 2), int)})
    rows = [[0, 1, 2], [2, 1, 0], [0, 0, 1]]
    assert load_data(rows, split="0,0,1").test.examples(np.arange(3)).tolist() == rows
    named = load_data(rows, split="0,0,1", letters="ACGT")
    assert (named.spec.num_classes, named.spec.show(named.test[1])) == (4, "GCA")
    for wrong, message in (
        ([[0, 1], [1]], "lists of different lengths"),
        (["ab", 1], "got text"),
        ([0.5], "dtype float64"),
    ):
        with pytest.raises(ValueError, match=message):
            load_data(wrong)


def test_the_shape_is_known_without_loading() -> None:
    maps = np.zeros((9, 4, 6), int)
    for given, shape in ((maps, "maps"), (maps[0], "sequences"), (maps[0, 0], "sequences"), (parts(), "sequences")):
        source = source_of(given)
        assert isinstance(source, GivenSource)
        assert source.shape == shape
        assert source_of(source) is source


def test_a_source_whose_array_is_gone_says_so() -> None:
    """As it is read back from the folder of a run."""
    with pytest.raises(ValueError, match="these data were an array in Python, which is not here any more"):
        GivenSource(num_classes=3).load()


def test_what_is_no_array_is_refused() -> None:
    assert as_array([[0, 1], [1, 0]]).tolist() == [[0, 1], [1, 0]]
    assert as_array(torch.tensor([3, 4])).tolist() == [3, 4]
    for wrong, message in (
        ("abc", "got text"),
        (["a", "b"], "got text"),
        ([[1], [1, 2]], "lists of different lengths"),
    ):
        with pytest.raises(ValueError, match=message):
            as_array(wrong)


def test_arrays_of_maps_are_flipped_like_maps() -> None:
    maps = np.random.default_rng(0).integers(0, 3, (40, 4, 6)).astype(np.uint8)
    flipped = load_data(maps, flips=True)
    assert flipped.train.flips
    assert not flipped.val.flips
    assert not load_data(maps, flips=False).train.flips
    assert not load_data(maps).train.flips  # nor unless asked for
    assert not load_data(maps[:, 0]).train.flips  # rows have no left and right to speak of
    with pytest.raises(ValueError, match="`flips` mirrors maps left to right; leave it out with the array"):
        load_data(maps[:, 0], flips=True)
