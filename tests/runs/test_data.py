"""Data for a run: its own, found again, and others that its model can or cannot score."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal.api import Run, compare, fit, load
from unordinal.data import Data, load_data
from unordinal.runs.data import data_for, run_data

SMALL: dict[str, Any] = {"steps": 1, "progress": False, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}


def numbers(num: int = 200, classes: int = 3) -> np.ndarray:
    return np.random.default_rng(0).integers(0, classes, (num, 6))


def trained_on(what: Any, **settings: Any) -> Run:
    return fit("arm", what, **{**SMALL, **settings})


def test_other_data_are_checked_against_the_classes_of_the_run() -> None:
    x = numbers()
    run = trained_on(x)
    assert data_for(run) is run.data
    assert len(data_for(run, x[:50]).test) == 50
    assert data_for(run, x[:50]).test.short_name == "the array"
    for given in (torch.from_numpy(x[:7]), x[:7].tolist()):
        assert len(data_for(run, given).test) == 7
    alike = load_data(x, num_classes=3)
    assert data_for(run, alike) is alike
    run_data(run).check_alike(alike)
    for other in (load_data(x + 1), load_data(numbers(classes=2), num_classes=2)):
        with pytest.raises(ValueError, match="is of another data set"):
            run_data(run).check_alike(other)
        with pytest.raises(ValueError, match="is of another data set"):
            data_for(run, other)
    with pytest.raises(ValueError, match="has class 3, but num_classes is 3"):
        data_for(run, x + 1)
    with pytest.raises(ValueError, match="takes sequences, but array gives maps"):
        data_for(run, np.zeros((5, 2, 3), int))
    with pytest.raises(ValueError, match="takes sequences, but streets gives maps"):
        data_for(run, "streets")


def test_a_loaded_run_finds_its_own_data(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", numbers())
    fitted = trained_on(tmp_path / "x.npy", out=tmp_path / "run", split="0.8,0.1,0.1")
    run = load(tmp_path / "run")
    assert run.data is None
    own = data_for(run)
    assert own.spec.fingerprint == fitted.spec.fingerprint
    assert [len(own.split(name)) for name in ("train", "val", "test")] == [160, 20, 20]
    again = data_for(run, tmp_path / "x.npy")  # the run's own file has the run's own split
    assert len(again.test) == 20
    assert len(data_for(run, tmp_path / "x.npy", is_whole=True).test) == 200
    assert len(data_for(run, tmp_path / "x.npy", split="0.5,0.25,0.25").test) == 50
    np.save(tmp_path / "x.npy", 2 - numbers())
    with pytest.raises(ValueError, match=r"has changed since .*run was trained on it; give it with `data`"):
        data_for(run)
    (tmp_path / "x.npy").unlink()
    with pytest.raises(ValueError, match=r"no file .*; or give the data to score with `data`"):
        data_for(run)


def test_an_array_from_python_must_be_given_again(tmp_path: Path) -> None:
    trained_on(numbers(), out=tmp_path / "run")
    with pytest.raises(ValueError, match="was trained on an array from Python; give the data to score"):
        data_for(load(tmp_path / "run"))


def test_records_of_fasta_are_named_and_scored_at_the_length_of_the_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(60)]
    even, ragged = tmp_path / "even.fasta", tmp_path / "ragged.fasta"
    even.write_text("".join(f">gene{i} x\n{row}\n" for i, row in enumerate(rows)))
    ragged.write_text("".join(f">gene{i}\n{row[: 15 + i % 3]}\n" for i, row in enumerate(rows)))
    run = trained_on(str(even), places=False)  # which can draw other lengths
    whole = data_for(run, even, is_whole=True)
    assert whole.test.names[:2] == ["gene0", "gene1"]
    assert whole.test.short_name == "even.fasta"
    assert data_for(run, ragged, is_whole=True).spec.event_shape == (20,)
    (tmp_path / "letters.txt").write_text("ACGT" * 100)
    assert data_for(run, tmp_path / "letters.txt", is_whole=True).spec.vocabulary == run.vocabulary
    (tmp_path / "book.txt").write_text("the quick fox " * 100)
    with pytest.raises(ValueError, match=r"book\.txt"):
        data_for(run, tmp_path / "book.txt")
    assert [len(text) for text in run.sample(2, length=7)] == [7, 7]


def test_texts_are_encoded_with_the_vocabulary_of_the_run(book: Path, tmp_path: Path) -> None:
    run = trained_on(book, length=16)
    assert run.vocabulary is not None
    other = tmp_path / "other.txt"
    other.write_text("a fox and a dog " * 40)
    found = data_for(run, other, is_whole=True)
    assert found.spec.vocabulary == run.vocabulary
    assert found.spec.event_shape == (16,)
    assert found.test.short_name == "other.txt"
    assert len(found.train) == 0
    np.save(tmp_path / "x.npy", numbers())
    with pytest.raises(ValueError, match=r"is a model of text, but .*x\.npy is not a text"):
        data_for(run, tmp_path / "x.npy")
    codes = trained_on(numbers())
    with pytest.raises(ValueError, match=r"is not a model of text, but .*book\.txt is a text|another data set"):
        data_for(codes, book)


def alphabets(tmp_path: Path) -> tuple[Run, Run, Run]:
    """Runs of two texts with as many characters, but other ones, and of an array with as many classes."""
    (tmp_path / "one.txt").write_text("abcd" * 500)
    (tmp_path / "two.txt").write_text("wxyz" * 500)
    settings: dict[str, Any] = {"length": 8, "alphabet": "chars"}
    one, two = (trained_on(tmp_path / name, **settings) for name in ("one.txt", "two.txt"))
    codes = trained_on(np.random.default_rng(0).integers(0, 4, (200, 8)))
    assert one.spec.num_classes == two.spec.num_classes == codes.spec.num_classes == 4
    return one, two, codes


def test_runs_of_other_alphabets_or_of_arrays_are_not_compared(tmp_path: Path) -> None:
    one, two, codes = alphabets(tmp_path)
    assert compare(one, one).difference == 0
    for first, second, message in (
        (one, two, "its classes are the characters 'abcd', not the characters 'wxyz'"),
        (two, one, "its classes are the characters 'wxyz', not the characters 'abcd'"),
        (one, codes, "its classes are the characters 'abcd', not numbers"),
        (codes, one, "its classes are numbers, not the characters 'abcd'"),
    ):
        with pytest.raises(ValueError, match=message):
            compare(first, second)
    array = np.random.default_rng(0).integers(0, 4, (10, 8))
    assert compare(one, one, array).num_examples == 10  # given as the run's own classes


def test_maps_of_other_classes_are_refused(tmp_path: Path) -> None:
    maps = np.random.default_rng(0).integers(0, 3, (40, 8, 8))
    settings: dict[str, Any] = {"net.width": 8, "net.num_levels": 2, "net.num_heads": 1}
    run = fit("absorbing", maps, steps=1, progress=False, batch_size=4, **settings)
    assert len(data_for(run, maps[:9]).test) == 9
    with pytest.raises(ValueError, match="takes maps, but array gives sequences"):
        data_for(run, numbers())
    other: Data = load_data(maps[:, :4, :4], num_classes=3)
    run_data(run).check_alike(other)  # of another size, which the model can score


def test_runs_of_other_alphabets_are_not_compared_on_an_array_of_classes(tmp_path: Path) -> None:
    first, second, _ = alphabets(tmp_path)
    with pytest.raises(ValueError, match="have different alphabets"):
        compare(first, second, numbers(classes=2))
