"""`unordinal sample`: seeds, shapes, prompts, invalid codes, reconstructions, and flags that a model has no use for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, refused, small_flags
from PIL import Image

import unordinal
from unordinal.data.vocabularies import REPLACEMENT


def test_sample_is_reproducible_and_counts_its_calls(cli: Cli, trained: Path) -> None:
    first, second = (cli("sample", trained, "--num", 3, "--steps", 7, "--seed", 5, "--json") for _ in range(2))
    assert first.json["samples"] == second.json["samples"]
    assert first.json["network_calls"] == 7
    assert all(len(text) == 32 for text in first.json["samples"])
    longer = cli("sample", trained, "--num", 1, "--length", 50, "--json")
    assert len(longer.json["samples"][0]) == 50
    assert longer.json["network_calls"] == 20
    plain = cli("sample", trained, "--num", 3, "--steps", 7, "--seed", 5)
    assert [text for text in plain.out.split("\n\n") if text] == [*first.json["samples"]]


def test_load_gives_model_and_vocabulary(trained: Path) -> None:
    run = unordinal.load(trained)
    assert run.vocabulary == unordinal.Vocabulary.text8()
    assert len(run.vocabulary.decode(run.model.sample(1)[0])) == 32
    assert not run.model.training
    score = unordinal.score(run, num_examples=3)
    assert score.kind == "elbo"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--num", "0"), "--num must be a whole number of at least 1, got 0"),
        (("--length", "-4"), "--length must be a whole number of at least 1, got -4"),
        (("--steps", "0"), "--steps must be a whole number of at least 1 or all, got 0"),
        (("--steps", "21"), "steps must be between 1 and 20"),
        (("--out", "no/such/folder/x.txt"), "no folder no/such/folder"),
        (("--chain", "."), "is a folder; expected a file"),
        (("--seed", "-1"), "--seed must be a whole number between 0 and 9223372036854775807, got -1"),
    ],
)
def test_samples_that_cannot_be_drawn(flags: tuple[str, ...], message: str, cli: Cli, trained: Path) -> None:
    refused(cli("sample", trained, *flags), message)


def test_invalid_codes_are_shown_counted_and_resampled(cli: Cli, trained_flow: Path) -> None:
    kept = cli("sample", trained_flow, "--num", 40, "--json").json
    assert kept["invalid_codes"] == sum(text.count(REPLACEMENT) for text in kept["samples"])
    assert kept["invalid_codes"] > 0  # five of 32 codes, hardly trained
    assert kept["steps"] is None
    again = cli("sample", trained_flow, "--num", 40, "--json").json
    assert again["samples"] == kept["samples"]
    clean = cli("sample", trained_flow, "--num", 3, "--length", 2, "--invalid", "resample", "--json").json
    assert clean["invalid_codes"] == 0
    hopeless = cli("sample", trained_flow, "--num", 3, "--length", 60, "--invalid", "resample")
    assert hopeless.code == 1
    assert "after 20 tries" in hopeless.complaint
    refused(cli("sample", trained_flow, "--steps", 3), "--steps is for diffusions", "is not one of them (ArgmaxFlow)")
    refused(cli("sample", trained_flow, "--chain", "c.png"), "draws a sample without a chain of steps")


def test_samples_begin_with_the_prompt(cli: Cli, arms: dict[str, Path]) -> None:
    result = cli(
        "sample", arms["arm"], "--num", 3, "--prompt", "the fox", "--temperature", 0.7, "--length", 20, "--json"
    )
    assert result.code == 0, result.err
    assert all(text.startswith("the fox") and len(text) == 20 for text in result.json["samples"])
    cold = cli("sample", arms["arm"], "--num", 2, "--temperature", 0, "--json").json["samples"]
    assert cold[0] == cold[1]


def test_what_only_autoregressive_models_have(
    cli: Cli, arms: dict[str, Path], trained: Path, trained_flow: Path
) -> None:
    for run in (trained, trained_flow):
        refused(cli("sample", run, "--prompt", "a"), "--prompt is for autoregressive models")
    refused(
        cli("sample", trained_flow, "--temperature", 0.5), "--temperature is for diffusions and autoregressive models"
    )
    read = cli("sample", arms["arm"], "--num", 2, "--prompt", "Ähm", "--json").json["samples"]
    assert all(text.startswith("ahm") for text in read)  # as the model reads any text
    refused(cli("sample", arms["arm"], "--temperature", -1), "at least 0, got -1")
    refused(cli("evaluate", trained, "--in-order"), "--in-order is only for a text and a model with a memory")
    refused(cli("sample", arms["arm"], "--prompt", "x" * 99), "the prompt has 99 symbols, more than the 16")
    refused(cli("sample", arms["arm"], "--steps", 3), "--steps is for diffusions, which remove noise step by step")


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


def test_pictures_without_data(cli: Cli, tmp_path: Path) -> None:
    maps = np.random.default_rng(0).integers(0, 3, (20, 8, 16)).astype(np.uint8)
    np.save(tmp_path / "m.npy", maps)
    flags = [flag for flag in small_flags("cityscapes/vae") if flag not in ("--height", "--width", "8", "16")]
    words = ("train", "cityscapes/vae", "--data", f"maps:{tmp_path / 'm.npy'}", *flags[:2], "--batch-size", 2)
    words = (*words, "--model.density.net.width", 8, "--model.density.num-flows", 1)
    words = (*words, "--validate-examples", 2, "--steps", 1)
    assert cli(*words, "--data-split", "16,4,0", "--out", "empty").code == 0
    assert cli(*words, "--data-split", "10,5,5", "--out", "moved").code == 0
    (tmp_path / "m.npy").unlink()
    for run in ("moved", "empty"):  # samples are drawn and shown, and the note says why there are no data beside them
        result = cli("sample", run, "--num", 2, "--grid", f"{run}.png", "--out", f"{run}.npy")
        assert result.code == 0, result.err
        assert "no data next to the samples" in result.err
        assert Path(f"{run}.npy").exists()
        refused(cli("sample", run, "--num", 2, "--reconstruct", "r.png"), "m.npy")
    refused(cli("evaluate", "moved"), "m.npy", "give the data to score with --data")


def test_reconstructions(cli: Cli, trained_maps: dict[str, Path]) -> None:
    for kind in ("vae", "multinomial"):
        steps = ("--steps", 2) if kind == "multinomial" else ()
        words = ("--num", 4, *steps, "--reconstruct", "r.png", "--out", "x.npy")
        result = cli("sample", trained_maps[kind], *words)
        assert result.code == 0, result.err
        assert pixels_of("r.png").shape[1] > 200
    refused(
        cli("sample", trained_maps["argmax-softplus"], "--reconstruct", "r2.png"),
        "--reconstruct needs a lossy model (a VAE or a diffusion); cityscapes/argmax-softplus returns maps unchanged",
    )
    assert not Path("r2.png").exists()


def pixels_of(name: str) -> np.ndarray:
    with Image.open(name) as image:
        return np.asarray(image)


def test_a_seed_reproduces_reconstructions(cli: Cli, trained_maps: dict[str, Path]) -> None:
    for name, seed in (("a.png", 1), ("b.png", 1), ("c.png", 2)):
        words = ("--num", 4, "--seed", seed, "--steps", 2, "--reconstruct", name, "--out", "x.npy")
        assert cli("sample", trained_maps["multinomial"], *words).code == 0
    a, b, c = (pixels_of(name) for name in ("a.png", "b.png", "c.png"))
    assert np.array_equal(a, b)
    assert a.shape != c.shape or not np.array_equal(a, c)


def test_labels_are_given_by_name(cli: Cli, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 2, (60, 4))
    labels: Any = {"train_label_kind": np.array(["frog", "toad"] * 20), "train_label_hue": np.arange(40) % 3}
    for part, rows in (("val", 10), ("test", 10)):
        labels |= {f"{part}_label_kind": np.array(["frog", "toad"] * 5), f"{part}_label_hue": np.arange(rows) % 3}
    np.savez(tmp_path / "x.npz", train=x[:40], val=x[40:50], test=x[50:], **labels)
    small = ("--model.net.width", 8, "--model.net.num-heads", 1, "--model.net.num-blocks", 1)
    made = cli("train", "arm", "--data", tmp_path / "x.npz", "--steps", 2, "--out", "run", *small)
    assert made.code == 0, made.err
    chosen = "batch size 256, validate examples 10, patience 3, conv 0, dropout 0.1"
    assert f"Note: chosen for 40 rows of 4 places: {chosen}." in made.err
    one = cli("sample", "run", "--label", "kind=frog", "--label", "hue=1", "--json").json["samples"]
    assert one == cli("sample", "run", "--label", "kind=frog", "hue=1", "--json").json["samples"]
    refused(cli("sample", "run", "--label", "kind=frogg"), "value of the label kind 'frogg'; did you mean frog?")
    refused(cli("sample", "run", "--label", "knd=frog"), "unknown label 'knd'; did you mean kind?")
    assert cli("evaluate", "run").code == 0
    plain = cli("train", "arm", "--data", tmp_path / "x.npz", "--steps", 1, "--out", "plain", "--no-places", *small)
    assert plain.code == 0, plain.err
    assert "chosen for" not in plain.err
