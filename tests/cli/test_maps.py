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


def size_of(name: str) -> tuple[int, int]:
    with Image.open(name) as image:
        return image.size


def pixels_of(name: str) -> np.ndarray:
    with Image.open(name) as image:
        return np.asarray(image)


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
    assert size_of("way.png")[0] > 100
    assert np.load("x.npy").shape == (1, 8, 16)


def test_endings_in_capitals_are_endings(cli: Cli, trained_maps: dict[str, Path]) -> None:
    result = cli("sample", trained_maps["multinomial"], "--num", 1, "--steps", 2, "--chain", "W.GIF", "--out", "X.NPY")
    assert result.code == 0, result.err
    assert Path("W.GIF").read_bytes()[:3] == b"GIF"
    assert np.load("X.NPY").shape == (1, 8, 16)


def test_a_seed_reproduces_reconstructions(cli: Cli, trained_maps: dict[str, Path]) -> None:
    for name, seed in (("a.png", 1), ("b.png", 1), ("c.png", 2)):
        words = ("--num", 4, "--seed", seed, "--steps", 2, "--reconstruct", name, "--out", "x.npy")
        assert cli("sample", trained_maps["multinomial"], *words).code == 0
    a, b, c = (pixels_of(name) for name in ("a.png", "b.png", "c.png"))
    assert np.array_equal(a, b)
    assert a.shape != c.shape or not np.array_equal(a, c)


def test_pictures_without_data(cli: Cli, tmp_path: Path) -> None:
    maps = np.random.default_rng(0).integers(0, 3, (20, 8, 16)).astype(np.uint8)
    np.save(tmp_path / "m.npy", maps)
    flags = [flag for flag in small_flags("cityscapes/vae") if flag not in ("--height", "--width", "8", "16")]
    words = ("train", "cityscapes/vae", "--data", f"maps:{tmp_path / 'm.npy'}", *flags[:2], "--batch-size", 2)
    words = (*words, "--model.width", 8, "--model.num-flows", 1, "--validate-examples", 2, "--steps", 1)
    assert cli(*words, "--data-split", "16,4,0", "--out", "empty").code == 0
    assert cli(*words, "--data-split", "10,5,5", "--out", "moved").code == 0
    (tmp_path / "m.npy").unlink()
    for run in ("moved", "empty"):  # samples are drawn and shown, and the note says why there are no data beside them
        result = cli("sample", run, "--num", 2, "--grid", f"{run}.png", "--out", f"{run}.npy")
        assert result.code == 0, result.err
        assert "no data beside the samples" in result.err
        assert Path(f"{run}.npy").exists()
        refused(cli("sample", run, "--num", 2, "--reconstruct", "r.png"), "m.npy")
    refused(cli("evaluate", "moved"), "m.npy", "give the data to score with --data")


def test_a_split_without_maps_has_no_picture(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.arange(15 * 16, dtype=np.uint8).reshape(15, 4, 4) % 3)
    refused(cli("data", f"maps:{tmp_path / 'few.npy'}", "--grid", "g.png"), "the test split has no examples")
    refused(cli("data", f"maps:{tmp_path / 'few.npy'}", "--grid", "g.jpg"), "--grid writes a .png")
    refused(cli("data", "docs", "--grid", "g.png"), "--grid takes maps")


def test_baselines_of_data(cli: Cli, book: Path) -> None:
    result = cli("data", "streets", "--height", 16, "--width", 32, "--baselines", "--json")
    assert 0 < result.json["baselines"]["counts given left, above, above left"] < 1.5
    result = cli("data", f"text:{book}", "--length", 32, "--baselines")
    assert "order-1 counts" in result.out
    np.save("rows.npy", np.zeros((20, 4), np.uint8) + np.arange(4, dtype=np.uint8))
    refused(cli("data", "array:rows.npy", "--baselines"), "count models are for texts and maps")


def test_other_maps_are_scored_where_they_fit(cli: Cli, trained_maps: dict[str, Path], tmp_path: Path) -> None:
    run = trained_maps["argmax-softplus"]
    rng = np.random.default_rng(0)
    np.save(tmp_path / "m.npy", rng.integers(0, 4, (6, 16, 12)).astype(np.uint8))  # fewer classes, another size
    words = ("--data", f"maps:{tmp_path / 'm.npy'}", "--data-split", "0,0,1", "--invalid-samples", 0, "--json")
    result = cli("evaluate", run, *words)
    assert result.code == 0, result.err
    assert result.json["num_examples"] == 6
    np.save(tmp_path / "m.npy", rng.integers(0, 9, (6, 16, 12)).astype(np.uint8))
    refused(cli("evaluate", run, *words), "class 8, but num_classes is 8")
    np.save(tmp_path / "m.npy", rng.integers(0, 4, (6, 10, 12)).astype(np.uint8))
    refused(cli("evaluate", run, *words), "multiples of 4, got (10, 12)")
    refused(cli("evaluate", run, "--data", "docs"), "takes maps, but docs gives sequences")
    same = cli("evaluate", run, "--data", "streets", "--num-examples", 2, "--json")
    assert same.json["num_examples"] == 2


def test_reconstructions(cli: Cli, trained_maps: dict[str, Path]) -> None:
    for kind in ("vae", "multinomial"):
        steps = ("--steps", 2) if kind == "multinomial" else ()
        words = ("--num", 4, *steps, "--reconstruct", "r.png", "--out", "x.npy")
        result = cli("sample", trained_maps[kind], *words)
        assert result.code == 0, result.err
        assert size_of("r.png")[0] > 200
    refused(
        cli("sample", trained_maps["argmax-softplus"], "--reconstruct", "r2.png"),
        "--reconstruct is for models that lose something",
    )
    assert not Path("r2.png").exists()


def test_samples_of_another_size(cli: Cli, trained_maps: dict[str, Path]) -> None:
    run = trained_maps["argmax-softplus"]
    result = cli("sample", run, "--num", 2, "--height", 16, "--width", 24, "--json")
    assert np.shape(result.json["samples"]) == (2, 16, 24)
    refused(cli("sample", run, "--height", 18), "multiples of 4, got (18, 16)")
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
    assert size_of("data.png")[0] > 200


def test_a_map_that_does_not_fit_is_refused_before_training(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "maps").mkdir()
    for index in range(8):
        pixels = np.full((6, 6), index % 2, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "maps" / f"{index}.png")
    train = ("--data", f"maps:{tmp_path / 'maps'}", "--data-split", "4,2,2", "--steps", 1)
    refused(cli("train", "cityscapes/argmax-softplus", "--size", "tiny", *train), "multiples of 4", "6 x 6")
    refused(
        cli("train", "text8/multinomial", "--size", "tiny", "--data", "streets"),
        "text8/multinomial takes sequences, but streets gives maps",
    )
    refused(cli("train", "cityscapes/vae", "--size", "tiny", "--data", "docs"), "takes maps, but docs gives sequences")
    refused(cli("train", "cityscapes/vae", "--size", "tiny", "--steps", 1), "cityscapes-dataset.com/downloads")
    Image.fromarray(np.zeros((6, 6, 3), np.uint8)).save(tmp_path / "maps" / "3.png")
    refused(cli("train", "cityscapes/multinomial", "--size", "tiny", *train), "3.png has colours (RGB)")


def test_a_run_of_maps_goes_on_where_it_stopped(cli: Cli) -> None:
    words = ("train", "cityscapes/argmax-softplus", "--data", "streets", *small_flags("cityscapes/argmax-softplus"))
    words = (*words, "--optim.no-decay-to-zero")  # which would follow the budget
    assert cli(*words, "--steps", 2, "--out", "half").code == 0
    assert cli(*words, "--steps", 4, "--out", "half", "--resume").code == 0
    assert cli(*words, "--steps", 4, "--out", "whole").code == 0
    half, whole = (
        cli("evaluate", run, "--num-examples", 2, "--json").json["bits_per_dim"] for run in ("half", "whole")
    )
    assert half == whole
