"""Arrays from files and from Python."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unordinal.data import load_data
from unordinal.data.arrays import ArraySource, read_arrays


def parts(num_classes: int = 5) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {name: rng.integers(0, num_classes, (n, 6)) for name, n in (("train", 50), ("val", 10), ("test", 7))}


def test_npz_with_splits_and_other_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    arrays = parts()
    labels, columns = np.zeros(3), np.array(["a"])
    np.savez(path, train=arrays["train"], val=arrays["val"], test=arrays["test"], labels=labels, columns=columns)
    data = load_data(f"array:{path}")
    assert data.spec.num_classes == 5
    assert data.spec.event_shape == (6,)
    assert data.spec.split_sizes == (50, 10, 7)
    assert data.notes == ("ignored arrays: labels, columns",)
    assert np.array_equal(data.test.examples(np.arange(7)).numpy(), arrays["test"])
    assert data.spec.show(data.test[0]) == " ".join(map(str, arrays["test"][0]))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int64, np.uint16, bool])
def test_npy_of_any_integer_type_is_split(dtype: type, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    x: np.ndarray = (np.arange(600).reshape(100, 6) % 2).astype(dtype)
    np.save(path, x)
    data = load_data(f"array:{path}", split="80,10,10")
    assert np.array_equal(data.train.examples(np.arange(80)).numpy(), x[:80].astype(np.int64))


def test_a_long_row_is_cut_like_text(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(1000) % 7)
    data = load_data(f"array:{path}", length=20)
    assert data.spec.event_shape == (20,)
    assert data.train[1].tolist() == [(20 + i) % 7 for i in range(20)]


def test_a_file_knows_its_shape_without_being_loaded(tmp_path: Path) -> None:
    maps = np.zeros((9, 4, 6), int)
    np.savez(tmp_path / "maps.npz", train=maps, val=maps, test=maps)
    np.save(tmp_path / "rows.npy", maps[0])
    assert ArraySource(str(tmp_path / "maps.npz")).shape == "maps"
    assert ArraySource(str(tmp_path / "rows.npy")).shape == "sequences"


def test_what_is_read_from_files_is_what_was_saved(tmp_path: Path) -> None:
    arrays = parts()
    np.savez(tmp_path / "three.npz", **arrays)
    np.savez(tmp_path / "one.npz", whatever=arrays["train"])
    np.save(tmp_path / "one.npy", arrays["train"])
    found, _, notes = read_arrays(tmp_path / "three.npz")
    assert (list(found), notes) == (["train", "val", "test"], ())
    assert all(np.array_equal(found[name], array) for name, array in arrays.items())
    for name in ("one.npz", "one.npy"):
        found, _, notes = read_arrays(tmp_path / name)
        assert (list(found), notes) == ([""], ())
        assert np.array_equal(found[""], arrays["train"])


def test_a_file_with_its_own_splits_is_not_split_again(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **parts())
    with pytest.raises(ValueError, match=r"has its own train, val and test; leave out `split`"):
        load_data(tmp_path / "a.npz", split="0.5,0.25,0.25")
    assert load_data(tmp_path / "a.npz", split="0,0,1").spec.split_sizes == (50, 10, 7)


@pytest.mark.parametrize(
    ("array", "config", "message"),
    [
        (np.full((50, 4), -1), {}, "has class -1; expected classes from 0"),
        (np.zeros((50, 4)), {}, "dtype float64; expected integer classes"),
        (np.full((50, 4), 65_536), {}, "has class 65536; at most 65536 classes"),
        (np.full((50, 4), 5), {"num_classes": 5}, "has class 5, but num_classes is 5"),
        (np.zeros((50, 4), int), {}, "only class 0"),
        (np.zeros((0, 4), int), {}, r"shape \(0, 4\)"),
        (np.ones((50, 4), int), {"num_classes": 1}, "has class 1, but num_classes is 1"),
    ],
)
def test_bad_arrays_are_refused(array: np.ndarray, config: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, array)
    with pytest.raises(ValueError, match=message):
        load_data(f"array:{path}", **config)


def test_bad_files_are_refused(tmp_path: Path) -> None:
    pickled, text, two, ragged = (tmp_path / name for name in ("p.npy", "t.npz", "two.npz", "r.npz"))
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    text.write_text("no array")
    np.savez(two, a=np.zeros((3, 2), int), b=np.zeros((3, 2), int))
    np.savez(ragged, train=np.zeros((3, 2), int), val=np.zeros((3, 3), int), test=np.zeros((3, 2), int))
    for path, message in (
        (pickled, "is not an array; expected an .npz or .npy of integer classes"),
        (text, "is not an array; expected an .npz or .npy of integer classes"),
        (two, "has the arrays a, b; expected train, val and test"),
        (ragged, r"examples of val have shape \(3,\)"),
        (tmp_path / "none.npy", "no file"),
    ):
        with pytest.raises(ValueError, match=message):
            load_data(f"array:{path}")


@pytest.mark.parametrize("num_classes", [2, 256, 257, 65_536])
def test_many_classes_are_stored_in_the_smallest_integer_and_come_back(num_classes: int, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, num_classes, (60, 5))
    x[0, 0] = num_classes - 1
    np.save(tmp_path / "x.npy", x)
    for data in (load_data(str(tmp_path / "x.npy"), split="60,0,0"), load_data({"train": x, "val": x, "test": x})):
        assert data.spec.num_classes == num_classes
        assert data.train.symbols.dtype == (np.uint8 if num_classes <= 256 else np.uint16)
        assert np.array_equal(data.train.examples(np.arange(60)).numpy(), x)


def test_letters_name_the_classes(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.tile([0, 1, 2, 3], (40, 2)))
    data = load_data(str(tmp_path / "x.npy"), letters="ACGTN")
    assert data.spec.num_classes == 5
    assert data.spec.show(data.train[0]) == "ACGTACGT"
    for letters, num_classes, message in (
        ("ACG", None, "has class 3, but num_classes is 3"),
        ("ACGT", 5, "`letters` names 4 classes, but `num_classes` is 5"),
        ("ACCT", None, "different characters"),
    ):
        with pytest.raises(ValueError, match=message):
            load_data(str(tmp_path / "x.npy"), letters=letters, num_classes=num_classes)
    with pytest.raises(ValueError, match="unknown setting 'letters'"):
        load_data("docs", alphabet="text8", letters="ab")
