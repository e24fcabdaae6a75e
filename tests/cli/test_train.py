"""`unordinal train`: run folders, budgets, settings, data and resuming; what is refused leaves nothing behind."""

import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL, Cli, refused, small_flags
from PIL import Image

import unordinal
from unordinal import load
from unordinal.cli.train import budget_text, free_name
from unordinal.config import TrainConfig
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import SegmentTransformer

TRAIN = ("train", "text8/multinomial", *SMALL, "--steps", "2")
AR = ("train", "text8/argmax-ar", *small_flags("text8/argmax-ar"), "--steps", "2", "--json")
INVERSE_FLOWS = "--model.inverse.num-flows must be 0, or more where a digit has at least 2 channels; got -1"
TRANSFORMER = ("--net", "transformer", "--model.density.net.num-heads", "2")


def test_a_run_folder_holds_what_it_should(trained: Path) -> None:
    names = {path.relative_to(trained).as_posix() for path in trained.rglob("*")}
    assert {"config.json", "model.safetensors", "metrics.jsonl", "checkpoints", "plots/loss.png"} <= names
    config = json.loads((trained / "config.json").read_text())
    assert config["run"]["model"]["net"]["width"] == 16
    assert config["run"]["train"]["steps"] == 20
    assert config["run"]["train"]["minutes"] is None
    assert config["data"]["vocabulary"]["kind"] == "text8"


def test_train_ends_with_json(cli: Cli, book: Path) -> None:
    result = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 5, "--json")
    assert result.code == 0, result.err
    values = result.json
    assert values["run"] == "runs/text8-multinomial-tiny"
    assert values["steps"] == 5
    assert values["parameters"] > 1000
    assert values["symbols_per_second"] > 0
    assert values["seconds"] > 0
    again = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 5, "--json")
    assert again.json["run"] == "runs/text8-multinomial-tiny-2"
    assert again.json["val_bits_per_dim"] == values["val_bits_per_dim"]  # the seed reproduces
    resumed = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 5, "--json", "--resume")
    assert resumed.json["run"] == "runs/text8-multinomial-tiny-2"
    longer = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 9, "--json", "--resume")
    assert longer.json["steps"] == 9


def test_resume_finds_its_run_among_others(cli: Cli, book: Path) -> None:
    words = ("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--json")
    first = cli(*words, "--steps", 2).json["run"]
    second = cli(*words, "--steps", 2, "--seed", 1).json["run"]
    assert first != second
    (Path(second) / "config.json").write_text("broken")
    longer = cli(*words, "--steps", 4, "--resume", "--lr", "0.001")
    assert longer.json["run"] == first
    assert longer.json["steps"] == 4
    saved = json.loads((Path(first) / "config.json").read_text())["run"]["train"]
    assert (saved["steps"], saved["lr"]) == (4, 0.001)


def test_flags_may_come_before_the_preset_and_epochs_are_a_budget(cli: Cli, book: Path) -> None:
    words = [w for w in SMALL if w not in ("--size", "tiny")]
    result = cli(
        "train", "--size=tiny", "--data", f"text:{book}", *words, "text8/multinomial", "--epochs", "0.1", "--json"
    )
    assert result.code == 0, result.err
    assert result.json["steps"] == math.ceil(0.1 * 5220 / (4 * 32))


def test_chars_and_arrays_train_too(cli: Cli, tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("Hello, World! 123\n" * 200)
    result = cli(
        "train",
        "text8/multinomial",
        "--data",
        f"text:{text}",
        "--alphabet",
        "chars",
        *SMALL,
        "--steps",
        2,
        "--out",
        "a",
    )
    assert result.code == 0, result.err
    assert unordinal.load("a").spec.num_classes == len(set("Hello, World! 123\n"))
    np.savez(tmp_path / "x.npz", data=np.random.default_rng(0).integers(0, 4, (300, 12)))
    result = cli("train", "text8/multinomial", "--data", f"array:{tmp_path}/x.npz", *SMALL, "--steps", 2, "--out", "b")
    assert result.code == 0, result.err
    sampled = cli("sample", "b", "--json", "--num", 1).json["samples"]
    assert len(sampled[0]) == 12
    assert max(sampled[0]) < 4


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--steps", "0"), "--steps must be a whole number of at least 1, got 0"),
        (("--steps", "-5"), "--steps must be a whole number of at least 1, got -5"),
        (("--minutes", "-1"), "--minutes must be a number above 0, got -1"),
        (("--steps", "1", "--minutes", "0"), "--minutes must be a number above 0, got 0"),
        (("--steps", "2", "--lr", "-1"), "--lr must be a number above 0, got -1"),
        (("--steps", "2", "--batch-size", "0"), "--batch-size must be a whole number of at least 1, got 0"),
        (("--steps", "2", "--checkpoint-every", "0"), "--checkpoint-every must be a whole number of at least 1, got 0"),
        (("--steps", "2", "--length", "-3"), "--length must be a whole number of at least 1, got -3"),
        (("--steps", "2", "--threads", "0"), "--threads must be at least 1, got 0"),
        (("--steps", "2", "--device", "cuda"), "no device cuda here; available: cpu"),
        (("--steps", "2", "--data-split", "0.5,0.5"), "expected a split TRAIN,VAL,TEST"),
        (("--steps", "2", "--model.net.width", "15"), "width 15 must be a multiple"),
        (("--steps", "2", "--model.num-steps", "0"), "at least one step, got 0"),
        (("--steps", "two"), "--steps must be a whole number of at least 1, got 'two'"),
        (("--steps", "2", "--lr", "nan"), "--lr must be a number above 0, got nan"),
        (("--steps", "2", "--seed", "-1"), "--seed must be a whole number between 0 and 9223372036854775807, got -1"),
        (("--steps", "2", "--seed", "99999999999999999999"), "--seed must be a whole number between 0"),
        (("--steps", "2", "--optim.matrix-lr", "nan"), "--optim.matrix-lr must be a number above 0, got nan"),
        (("--steps", "2", "--optim.clip", "-1"), "--optim.clip must be a number above 0, got -1"),
        (("--steps", "2", "--optim.ema", "2"), "--optim.ema must be a number of at least 0 and below 1, got 2"),
        (("--steps", "2", "--optim.beta2", "2"), "--optim.beta2 must be a number of at least 0 and below 1, got 2"),
        (("--steps", "2", "--optim.warmup", "-5"), "--optim.warmup must be a whole number of at least 0, got -5"),
        (("--steps", "2", "--optim.weight-decay", "-3"), "--optim.weight-decay must be a number of at least 0, got -3"),
        (
            ("--steps", "2", "--model.net.num-blocks", "-2"),
            "--model.net.num-blocks must be a whole number of at least 1, got -2",
        ),
        (
            ("--steps", "2", "--model.net.window", "-1"),
            "--model.net.window must be a whole number of at least 0, got -1",
        ),
        (("--steps", "2", "--model.net.width", "0"), "--model.net.width must be a whole number of at least 1, got 0"),
        (("--steps", "2", "--model.net.conv", "-3"), "--model.net.conv must be a whole number of at least 0, got -3"),
        (("--steps", "2", "--model.net.conv", "4"), "must be odd"),
        (("--steps", "2", "--num-classes", "5"), "unknown option '--num-classes'"),
        (("--steps", "2", "--data-split", ""), "expected a split"),
    ],
)
def test_settings_that_make_no_sense(flags: tuple[str, ...], message: str, cli: Cli, book: Path) -> None:
    refused(cli("train", "text8/multinomial", "--data", f"text:{book}", "--out", "run", *SMALL, *flags), message)
    assert not Path("run").exists()


def test_texts_that_cannot_be_used(cli: Cli, tmp_path: Path) -> None:
    for name, content, message in (
        ("missing.txt", None, "no file"),
        ("empty.txt", b"", "is empty"),
        ("short.txt", b"abc", "shorter than one sequence of 32"),
        ("wrong.txt", b"abc" * 300 + b"D", "got 'D' at position 900"),
        ("thin.txt", b"abc" * 100, "the val split has 15 symbols, shorter than one sequence of 32"),
    ):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        result = cli(*TRAIN, "--data", f"text:{tmp_path / name}")
        refused(result, message)
        assert name in result.complaint or "split" in result.complaint
    assert not Path("runs").exists()


def test_arrays_that_cannot_be_used(cli: Cli, tmp_path: Path) -> None:
    for array, flags, message in (
        (np.full((90, 8), -2), (), "has class -2"),
        (np.full((90, 8), 0.5), (), "dtype float64"),
        (np.full((90, 8), 7), ("--num-classes", "7"), "has class 7, but num_classes is 7"),
        (np.full((90, 8), 65_536), (), "has class 65536; at most 65536 classes"),
        (np.arange(90 * 64).reshape(90, 8, 8) % 3, (), "takes sequences"),
    ):
        np.save(tmp_path / "x.npy", array)
        refused(cli(*TRAIN, "--data", f"array:{tmp_path}/x.npy", *flags), message)


def test_folders_that_cannot_be_written_to(cli: Cli, book: Path, trained: Path, tmp_path: Path) -> None:
    words = ("--data", f"text:{book}")
    before = (trained / "model.safetensors").read_bytes()
    refused(cli(*TRAIN, *words, "--out", trained), "already holds a run; add --resume")
    assert (trained / "model.safetensors").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious.txt").write_text("keep me")
    refused(cli(*TRAIN, *words, "--out", tmp_path / "mine"), "is not an empty folder")
    assert (tmp_path / "mine" / "precious.txt").read_text() == "keep me"
    (tmp_path / "file").write_text("")
    refused(cli(*TRAIN, *words, "--out", tmp_path / "file" / "run"), "cannot write to")
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "locked").mkdir(mode=0o500)
        refused(cli(*TRAIN, *words, "--out", tmp_path / "locked" / "run"), "cannot write to")


def test_resuming_with_other_settings_or_data(cli: Cli, book: Path, trained: Path, tmp_path: Path) -> None:
    same = ("train", "text8/multinomial", *SMALL, "--steps", "20", "--out", trained, "--resume")
    refused(cli(*same, "--data", f"text:{book}", "--seed", "5"), "cannot resume", "train.seed: 0 -> 5")
    other = tmp_path / "other.txt"
    other.write_text("another text " * 400)
    refused(cli(*same, "--data", f"text:{other}"), "cannot resume", f"text:{other} are not those it was trained on")


def test_text8_without_a_network(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from unordinal.data import download

    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path / "cache"))
    monkeypatch.setitem(download.ARCHIVES, "text8", ("http://127.0.0.1:9/text8.zip", "a" * 64))
    refused(cli(*TRAIN), "could not download", str(tmp_path / "cache" / "downloads" / "text8.zip"), "a" * 64)


def test_a_damaged_checkpoint(cli: Cli, trained: Path, book: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(trained, broken)
    _, newest = sorted((broken / "checkpoints").glob("*/state.pt"))
    words = (
        "train",
        "text8/multinomial",
        *SMALL,
        "--steps",
        "20",
        "--data",
        f"text:{book}",
        "--out",
        broken,
        "--resume",
    )
    newest.write_bytes(newest.read_bytes()[:1000])
    result = cli(*words)
    assert result.code == 0
    assert "Warning: the checkpoint" in result.err
    assert "kept as damaged-step-00000020, and training continues from step 18" in result.err
    assert "Continuing from step 18" in result.err
    for state in (broken / "checkpoints").glob("*/state.pt"):
        state.write_bytes(state.read_bytes()[:1000])
    refused(cli(*words), "state.pt has 1,000 bytes", "no other checkpoint can be used")


@pytest.mark.parametrize(
    ("flags", "base", "channels"),
    [
        ((), 2, 5),
        (("--base", 3), 3, 9),
        (("--base", 2), 2, 10),
        (("--surjection", "softplus", "--base", 27), 27, 27),
        (("--surjection", "softplus"), 27, 27),
        (("--surjection", "softplus", "--base", 6), 6, 12),
        (("--surjection", "gumbel", "--base", 3), 3, 9),
        (("--surjection", "gumbel-threshold", "--base", 2), 2, 10),
        (("--surjection", "round-uniform", "--base", 3), 3, 9),
        (("--surjection", "round-variational", *TRANSFORMER), 27, 27),
        (("--surjection", "ordinal"), 27, 1),
    ],
)
def test_surjections_bases_and_nets_swap(
    flags: tuple[object, ...], base: int, channels: int, cli: Cli, book: Path
) -> None:
    result = cli(*AR, "--data", f"text:{book}", *flags, "--out", "run")
    assert result.code == 0, result.err
    assert result.json["base"] == base
    assert result.json["density_parameters"] + result.json["inverse_parameters"] == result.json["parameters"]
    assert f", base {base}, " in result.err
    model = unordinal.load("run").model
    assert isinstance(model, ArgmaxFlow)
    assert model.surjection.num_channels == channels
    assert cli("sample", "run", "--num", 1, "--json").code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--surjection", "softplus", "--base", 28), "between 2 and the number of classes, 27; got 28"),
        (("--surjection", "softplus", "--base", 1), "between 2 and the number of classes, 27; got 1"),
        (("--base", 28), "between 2 and the number of classes, 27; got 28"),
        (
            ("--net", "transformer", "--model.density.net.num-heads", 0),
            "--model.density.net.num-heads must be a whole number of at least 1, got 0",
        ),
        (
            ("--net", "transformer", "--model.density.net.width", -8),
            "width must be a whole number of at least 1, got -8",
        ),
        ((*TRANSFORMER, "--model.density.net.dropout", 1), "dropout must be a number of at least 0 and below 1, got 1"),
        (("--surjection", "argmax"), "argmax"),
        (("--model.density.num-mixtures", 0), "at least 1 component, got 0"),
        (("--model.density.net.dropout", 1), "dropout must be a number of at least 0 and below 1, got 1"),
        (("--model.inverse.width", 0), "width must be at least 1, got 0"),
        (("--model.inverse.num-flows", -1), INVERSE_FLOWS),
    ],
)
def test_flows_that_cannot_be(flags: tuple[object, ...], message: str, cli: Cli, book: Path) -> None:
    refused(cli(*AR, "--data", f"text:{book}", "--out", "run", *flags), message)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--surjection", "ordinal"), "at least 2 channels, got 1"),
        (("--model.density.num-flows", 0), "--model.density.num-flows must be at least 1, got 0"),
    ],
)
def test_couplings_that_cannot_be(flags: tuple[object, ...], message: str, cli: Cli, book: Path) -> None:
    words = ("train", "text8/argmax-coupling", *small_flags("text8/argmax-coupling"), "--steps", "2", "--json")
    refused(cli(*words, "--data", f"text:{book}", "--out", "run", *flags), message)
    assert not Path("run").exists()


def test_one_class_is_refused(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((100, 8), np.uint8))
    refused(cli(*AR, "--data", f"array:{tmp_path}/x.npy", "--out", "run"), "only class 0")


def test_two_classes_do_not_couple(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 2, (100, 8)).astype(np.uint8))
    words = ("train", "text8/argmax-coupling", *small_flags("text8/argmax-coupling"), "--steps", 2)
    refused(cli(*words, "--data", f"array:{tmp_path}/x.npy", "--out", "run"), "at least 2 channels, got 1")


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
    refused(cli("train", "cityscapes/multinomial", "--size", "tiny", *train), "3.png is a colour image")


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


def test_segments_follow_the_length_asked_for(cli: Cli, book: Path, tmp_path: Path) -> None:
    words = ["--data", f"text:{book}", *small_flags("text8/arm-xl"), "--length", "24", "--steps", "1"]
    assert cli("train", "text8/arm-xl", *words, "--out", tmp_path / "xl").code == 0
    run = load(tmp_path / "xl")
    assert isinstance(run.model, AutoregressiveModel)
    assert isinstance(run.model.net, SegmentTransformer)
    assert (run.model.net.segment, run.model.net.memory) == (6, 18)


def test_a_model_takes_its_network_from_the_data(cli: Cli, book: Path) -> None:
    result = cli("train", "multinomial", *SMALL, "--steps", 1, "--data", f"text:{book}", "--out", "text")
    assert result.code == 0, result.err
    assert unordinal.load("text").model.event_shape == (32,)
    result = cli("train", "multinomial", *small_flags("cityscapes/multinomial"), "--steps", 1, "--data", "streets")
    assert result.code == 0, result.err
    assert unordinal.load("runs/multinomial-tiny").model.event_shape == (8, 16)
    refused(cli("train", "multinomial", "--size", "tiny"), "which data?")
    words = ("train", "vae", "--size", "tiny", "--data", f"text:{book}")
    refused(cli(*words), "vae is a model of maps, but the data are sequences")


def test_the_budget_is_told() -> None:
    assert budget_text(TrainConfig(minutes=0.5)) == "0.5 minutes"
    assert budget_text(TrainConfig(steps=7)) == "7 steps"
    assert budget_text(TrainConfig(epochs=40)) == "40 epochs"


def test_a_free_name_is_the_first_that_is_not_taken(tmp_path: Path) -> None:
    assert free_name(tmp_path / "run") == tmp_path / "run"
    for name in ("run", "run-2", "run-4"):
        (tmp_path / name).mkdir()
    assert free_name(tmp_path / "run") == tmp_path / "run-3"


def test_more_weights_than_symbols_get_a_note(cli: Cli, book: Path) -> None:
    words = ("train", "arm", "--data", book, "--length", 16, "--steps", 1, "--batch-size", 2, "--validate-examples", 2)
    large = cli(*words, "--out", "large")
    assert "it may memorise them" in large.err
    small = cli(
        *words, "--model.net.width", 4, "--model.net.num-blocks", 1, "--model.net.num-heads", 1, "--out", "small"
    )
    assert small.code == 0, small.err
    assert "by heart" not in small.err


def test_steps_and_minutes_end_a_run_together(cli: Cli, book: Path) -> None:
    words = ("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--json")
    by_steps = cli(*words, "--steps", 3, "--minutes", 5, "--out", "steps")
    assert by_steps.code == 0, by_steps.err
    assert by_steps.json["steps"] == 3
    by_minutes = cli(*words, "--steps", 10**6, "--minutes", 0.005, "--out", "minutes")
    assert by_minutes.code == 0, by_minutes.err
    assert 0 < by_minutes.json["steps"] < 10**6


def test_the_end_of_training_says_what_was_kept_and_whether_it_beats_counts(cli: Cli, book: Path) -> None:
    words = ("train", "text8/arm", "--data", f"text:{book}", *small_flags("text8/arm"), "--steps", 3, "--out", "run")
    result = cli(*words, "--json")
    assert result.code == 0, result.err
    lines = result.err.splitlines()
    best = result.json["val_bits_per_dim"]
    assert f"Kept the weights of step 3: validation {best:.4f} bits per character." in lines
    assert any(line.startswith("Counts of pairs of the training data give 1.3") for line in lines)
    assert any(line.endswith("the model is not better yet: train it longer.") for line in lines)
    assert "Score them with: unordinal evaluate run" in lines
    assert result.out.count("\n") == 1  # nothing but JSON on standard output


def test_data_of_ones_own_have_the_options_of_their_format(cli: Cli, book: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 4, (60, 8)))
    for data, has, lacks in (
        (book, {"--alphabet", "--length", "--data-split"}, {"--letters", "--height", "--flips", "--num-classes"}),
        (tmp_path / "x.npy", {"--letters", "--num-classes", "--data-split"}, {"--alphabet", "--height", "--colours"}),
        ("streets", {"--height", "--width", "--flips"}, {"--alphabet", "--length", "--data-split", "--num-classes"}),
    ):
        said = cli("train", "multinomial", "--data", data, "--help-all").out
        assert all(f"{flag}" in said.split() for flag in has)
        assert not any(f"{flag}" in said.split() for flag in lacks)
    refused(cli("train", "arm", "--data", book, "--letters", "ab"), "unknown option '--letters'")
    refused(cli("train", "multinomial", "--data", "streets", "--length", 4), "unknown option '--length'")


def test_losses_are_logged_for_tensorboard(cli: Cli, book: Path) -> None:
    result = cli(*TRAIN, "--data", f"text:{book}", "--out", "run", "--tensorboard")
    assert result.code == 0, result.err
    assert [path.name.partition(".")[0] for path in Path("run/tensorboard").iterdir()] == ["events"]
