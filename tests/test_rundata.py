"""Data for a run: their shape before they are loaded, and what its model cannot score."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal.api import fit
from unordinal.data import data_from_array
from unordinal.rundata import check_alike, data_of, given_shape


def test_the_shape_of_data_is_known_before_they_are_loaded(tmp_path: Path) -> None:
    rows, maps = np.zeros((4, 6), int), np.zeros((4, 6, 2), int)
    np.save(tmp_path / "maps.npy", maps)
    np.savez(tmp_path / "rows.npz", train=rows, val=rows, test=rows)
    given: list[tuple[Any, str]] = [
        (rows, "sequences"),
        (rows[0], "sequences"),
        (maps, "maps"),
        (torch.from_numpy(maps), "maps"),
        ({"train": maps, "val": maps, "test": maps}, "maps"),
        (data_from_array(maps + np.arange(2)), "maps"),
        (f"array:{tmp_path / 'maps.npy'}", "maps"),
        (f"array:{tmp_path / 'rows.npz'}", "sequences"),
        ("streets", "maps"),
        ("docs", "sequences"),
    ]
    for data, shape in given:
        assert given_shape(data) == shape


def test_other_data_are_checked_against_the_classes_of_the_run(tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 3, (200, 6))
    settings: dict[str, Any] = {"net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    run = fit("arm", x, out=tmp_path / "run", steps=1, progress=False, **settings)
    assert len(data_of(run, x[:50]).test) == 50
    with pytest.raises(ValueError, match="is of another data set"):
        check_alike(run, data_from_array(x + 1), "more")
    with pytest.raises(ValueError, match="has class 3, but num_classes is 3"):
        data_of(run, x + 1)


def test_records_of_fasta_are_named_and_scored_at_the_length_of_the_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = ["".join(rng.choice(list("ACGT"), 20)) for _ in range(60)]
    even, ragged = tmp_path / "even.fasta", tmp_path / "ragged.fasta"
    even.write_text("".join(f">gene{i} x\n{row}\n" for i, row in enumerate(rows)))
    ragged.write_text("".join(f">gene{i}\n{row[: 15 + i % 3]}\n" for i, row in enumerate(rows)))
    settings: dict[str, Any] = {"net.width": 16, "net.num_blocks": 1, "net.num_heads": 2}
    run = fit("arm", str(even), out=tmp_path / "run", steps=1, progress=False, **settings)
    whole = data_of(run, even, is_whole=True)
    assert whole.test.names[:2] == ["gene0", "gene1"]
    assert whole.test.label == "even.fasta"
    assert data_of(run, ragged, is_whole=True).spec.event_shape == (20,)
    (tmp_path / "book.txt").write_text("ACGT" * 100)
    with pytest.raises(ValueError, match=r"is a model of fasta:PATH, but .*book\.txt is a text"):
        data_of(run, str(tmp_path / "book.txt"))
    assert [len(text) for text in run.sample(2, length=7)] == [7, 7]
