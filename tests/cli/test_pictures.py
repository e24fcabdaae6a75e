"""Pictures of maps: grids of samples and data, and pictures that are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Cli, refused
from PIL import Image

from unordinal.cli.pictures import check_png, first_maps, require_maps, write_grid
from unordinal.data import load_data
from unordinal.data.spec import DataSpec


def test_grids_show_samples_beside_data(cli: Cli, trained_maps: dict[str, Path]) -> None:
    for kind, run in trained_maps.items():
        steps = ("--steps", 3) if kind == "multinomial" else ()
        result = cli("sample", run, "--num", 4, *steps, "--grid", "grid.png")
        assert result.code == 0, result.err
        with Image.open("grid.png") as image:
            width, height = image.size
            colours = np.asarray(image.convert("RGB")).reshape(-1, 3)
        assert width > 2 * height  # two groups side by side
        seen = {tuple(colour) for colour in np.unique(colours, axis=0).tolist()}
        assert {(0x80, 0x40, 0x80), (0x46, 0x82, 0xB4)} <= seen  # road and sky, of the data


def test_a_split_without_maps_has_no_picture(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.arange(15 * 16, dtype=np.uint8).reshape(15, 4, 4) % 3)
    refused(cli("data", f"maps:{tmp_path / 'few.npy'}", "--grid", "g.png"), "the test split has no examples")
    refused(cli("data", f"maps:{tmp_path / 'few.npy'}", "--grid", "g.jpg"), "--grid writes a .png")
    refused(cli("data", "docs", "--grid", "g.png"), "--grid is for maps, and docs gives sequences")


def test_a_grid_shows_64_maps_at_most(tmp_path: Path) -> None:
    spec = DataSpec("x", 3, (2, 2))
    x = torch.arange(70 * 4).reshape(70, 2, 2) % 3
    for name, num in (("a.png", 64), ("b.png", 70), ("c.png", 8)):
        write_grid(tmp_path / name, [("maps", x[:num])], spec)
    a, b, c = ((tmp_path / name).read_bytes() for name in ("a.png", "b.png", "c.png"))
    assert a == b != c


def test_the_first_maps_of_a_split() -> None:
    maps = np.random.default_rng(0).integers(0, 3, (20, 4, 4))
    data = load_data({"train": maps[:10], "val": maps[10:13], "test": maps[13:]})
    assert np.array_equal(first_maps(data, "test", 2), maps[13:15])
    assert np.array_equal(first_maps(data, "test", 16), maps[13:])  # fewer than asked for
    require_maps(data.spec)
    with pytest.raises(ValueError, match="pictures are for maps"):
        require_maps(DataSpec("x", 3, (4,)))


def test_pictures_are_png(tmp_path: Path) -> None:
    check_png("--grid", None)
    check_png("--grid", tmp_path / "x.PNG")
    with pytest.raises(ValueError, match=r"--grid writes a .png, got x.gif"):
        check_png("--grid", tmp_path / "x.gif")
