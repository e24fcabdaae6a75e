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
