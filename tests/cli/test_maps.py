"""Maps on the command line: pictures, sizes, and what is refused in one line."""

from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, Result, small_flags
from PIL import Image

from unordinal.cli import run as run_cli


@pytest.fixture(scope="session")
def trained_maps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A diffusion, a flow and a VAE of maps after two steps."""
    folder = tmp_path_factory.mktemp("maps")
    for kind in ("multinomial", "argmax-softplus", "vae"):
        preset = f"cityscapes/{kind}"
        words = ["train", preset, "--data", "streets", *small_flags(preset), "--steps", "2"]
        assert run_cli([*words, "--out", str(folder / kind)]) == 0
    return {kind: folder / kind for kind in ("multinomial", "argmax-softplus", "vae")}


def refused(result: Result, *parts: str) -> None:
    assert result.code == 2, (result.out, result.err)
    for part in parts:
        assert part in result.complaint


def test_the_unit_is_bits_per_pixel(cli: Cli, trained_maps: dict[str, Path]) -> None:
    result = cli("evaluate", trained_maps["argmax-softplus"], "--num-examples", 4, "--json")
    assert result.json["unit"] == "bits per pixel"
    assert "bits per pixel" in result.out


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


def test_chains_are_animated(cli: Cli, trained_maps: dict[str, Path]) -> None:
    run = trained_maps["multinomial"]
    result = cli("sample", run, "--num", 1, "--steps", 5, "--chain", "way.gif", "--out", "x.npy")
    assert result.code == 0, result.err
    with Image.open("way.gif") as image:
        assert getattr(image, "n_frames", 1) == 6
    result = cli("sample", run, "--num", 1, "--steps", 5, "--chain", "way.png", "--out", "x.npy")
    assert result.code == 0, result.err
    assert Image.open("way.png").size[0] > 100
    assert np.load("x.npy").shape == (1, 8, 16)


def test_reconstructions(cli: Cli, trained_maps: dict[str, Path]) -> None:
    for kind in ("vae", "multinomial"):
        steps = ("--steps", 2) if kind == "multinomial" else ()
        words = ("--num", 4, *steps, "--reconstruct", "r.png", "--out", "x.npy")
        result = cli("sample", trained_maps[kind], *words)
        assert result.code == 0, result.err
        assert Image.open("r.png").size[0] > 200
    refused(
        cli("sample", trained_maps["argmax-softplus"], "--reconstruct", "r2.png"),
        "--reconstruct is for models that lose something",
    )
    assert not Path("r2.png").exists()


def test_samples_of_another_size(cli: Cli, trained_maps: dict[str, Path]) -> None:
    run = trained_maps["argmax-softplus"]
    result = cli("sample", run, "--num", 2, "--height", 16, "--width", 24, "--json")
    assert np.shape(result.json["samples"]) == (2, 16, 24)
    refused(cli("sample", run, "--height", 15), "only even sides")
    refused(cli("sample", run, "--length", 15), "--length is for sequences")
    refused(cli("sample", run, "--grid", "grid.jpg"), "--grid writes a .png, got grid.jpg")


def test_pictures_are_for_maps(cli: Cli, trained: Path) -> None:
    refused(cli("sample", trained, "--grid", "grid.png"), "pictures are for maps")
    refused(cli("sample", trained, "--chain", "way.gif"), "pictures are for maps")
    refused(cli("sample", trained, "--height", 4), "--height is for maps")


def test_data_are_described_and_drawn(cli: Cli) -> None:
    result = cli("data", "streets", "--height", 16, "--width", 32, "--grid", "data.png", "--json")
    assert result.code == 0, result.err
    assert result.json["event_shape"] == [16, 32]
    assert result.json["categories"][0][0] == "road"
    assert Image.open("data.png").size[0] > 200


def test_a_map_that_does_not_fit_is_refused_before_training(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    for index in range(8):
        pixels = np.full((6, 6), index % 2, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "maps" / f"{index}.png")
    train = ("--data", f"maps:{tmp_path / 'maps'}", "--data-split", "4,2,2", "--steps", 1)
    refused(cli("train", "cityscapes/argmax-softplus", "--size", "tiny", *train), "multiples of 4", "6 x 6")
    refused(cli("train", "text8/multinomial", "--size", "tiny", "--data", "streets"), "leave out --length")
    refused(cli("train", "cityscapes/vae", "--size", "tiny", "--steps", 1), "cityscapes-dataset.com/downloads")
    Image.fromarray(np.zeros((6, 6, 3), np.uint8)).save(tmp_path / "maps" / "3.png")
    refused(cli("train", "cityscapes/multinomial", "--size", "tiny", *train), "3.png has colours (RGB)")


def test_a_run_of_maps_goes_on_where_it_stopped(cli: Cli) -> None:
    words = ("train", "cityscapes/argmax-softplus", "--data", "streets", *small_flags("cityscapes/argmax-softplus"))
    assert cli(*words, "--steps", 2, "--out", "half").code == 0
    assert cli(*words, "--steps", 4, "--out", "half", "--resume").code == 0
    assert cli(*words, "--steps", 4, "--out", "whole").code == 0
    half, whole = (
        cli("evaluate", run, "--num-examples", 2, "--json").json["bits_per_dim"] for run in ("half", "whole")
    )
    assert half == whole
