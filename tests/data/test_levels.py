"""Grey levels and colours of PNGs as classes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unordinal.data import load_data
from unordinal.data.levels import Colours, Levels

COLOURS = "road #804080\nsky 70 130 180\na tree #00FF00\n"


def pictures(folder: Path, values: np.ndarray) -> Path:
    """One PNG for each of (N, H, W) grey levels or (N, H, W, 3) colours."""
    folder.mkdir()
    for index, pixels in enumerate(values.astype(np.uint8)):
        Image.fromarray(pixels).save(folder / f"{index:03}.png")
    return folder


def test_few_levels_are_so_many_classes(tmp_path: Path) -> None:
    truth = np.random.default_rng(0).integers(0, 4, (20, 4, 6))
    folder = pictures(tmp_path / "maps", truth * 85)
    data = load_data(str(folder), split="20,0,0")
    assert data.spec.num_classes == 4
    assert np.array_equal(data.train.examples(np.arange(20)).numpy(), truth)
    assert data.spec.categories[1] == ("level 85", "#555555")
    assert "the grey levels 0,85,170,255 are classes 0 to 3" in data.notes
    again = load_data(str(folder), split="20,0,0", levels=data.spec.levels)
    assert np.array_equal(again.train.symbols, data.train.symbols)


def test_plain_classes_stay_as_they_are(tmp_path: Path) -> None:
    """One class of six is missing: a gap, not a scale of grey."""
    truth = np.random.default_rng(0).choice([0, 1, 2, 4, 5], (20, 4, 6))
    data = load_data(str(pictures(tmp_path / "maps", truth)), split="20,0,0")
    assert data.spec.num_classes == 6
    assert data.spec.categories == ()
    assert np.array_equal(data.train.examples(np.arange(20)).numpy(), truth)


def test_colours_are_classes_with_names(tmp_path: Path) -> None:
    truth = np.random.default_rng(0).integers(0, 3, (20, 4, 6))
    values = np.array([[0x80, 0x40, 0x80], [70, 130, 180], [0, 255, 0]])[truth]
    folder = pictures(tmp_path / "maps", values)
    data = load_data(str(folder), split="20,0,0", colours=COLOURS)
    assert np.array_equal(data.train.examples(np.arange(20)).numpy(), truth)
    assert data.spec.categories == (("road", "#804080"), ("sky", "#4682b4"), ("a tree", "#00ff00"))
    with pytest.raises(ValueError, match=r"is a colour image \(its mode is RGB\)"):
        load_data(str(folder))
    with pytest.raises(ValueError, match=r"the colour #00ff00 at row \d, column \d, which is not one of the 2 colours"):
        load_data(str(folder), colours="road #804080\nsky #4682b4")


def test_levels_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "maps", np.full((6, 4, 4), 85) * (np.arange(6) % 2)[:, None, None])
    with pytest.raises(ValueError, match="has the grey level 85 at row 0, column 0; expected 0,170"):
        load_data(str(folder), levels="0,170")
    for text in ("0,85,17", "1,1", "a,b", "7", "0,256"):
        with pytest.raises(ValueError, match="`levels` must be"):
            Levels.of_text(text)
    for text in ("road", "road #80408\nsky #4682b4", "a 1 2 3\nb 1 2 3", "road 300 0 0\nsky #4682b4"):
        with pytest.raises(ValueError, match="`colours`"):
            Colours.of_text(text)
    with pytest.raises(ValueError, match="give only one of them"):
        load_data(str(folder), levels="0,85", colours=COLOURS)


def test_levels_are_for_folders_of_pictures(tmp_path: Path) -> None:
    np.save(tmp_path / "maps.npy", np.zeros((6, 4, 4), int) + np.arange(4))
    given: dict[str, Any] = {"levels": "0,85", "colours": COLOURS}
    with pytest.raises(ValueError, match="`levels` is only for folders of PNGs"):
        load_data(tmp_path / "maps.npy", levels="0,85")
    for setting, value in given.items():
        with pytest.raises(ValueError, match=f"unknown setting '{setting}'"):
            load_data("docs", **{setting: value})


def test_colours_name_the_classes_of_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "maps.npy", np.zeros((6, 4, 4), int) + np.arange(4) % 2)
    data = load_data(tmp_path / "maps.npy", colours=COLOURS)
    assert data.spec.num_classes == 3  # the third class does not occur
    assert data.spec.categories == (("road", "#804080"), ("sky", "#4682b4"), ("a tree", "#00ff00"))
    with pytest.raises(ValueError, match="names 3 classes, but `num_classes` is 4"):
        load_data(tmp_path / "maps.npy", colours=COLOURS, num_classes=4)
    np.save(tmp_path / "more.npy", np.zeros((6, 4, 4), int) + np.arange(4))
    with pytest.raises(ValueError, match="has class 3, but num_classes is 3"):
        load_data(tmp_path / "more.npy", colours=COLOURS)
