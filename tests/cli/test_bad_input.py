"""Bad input: one line that says what was expected, what came and what to do; exit code 2; nothing lost."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL, Cli, Result

TRAIN = ("train", "text8/multinomial", *SMALL, "--steps", "2")


def refused(result: Result, *parts: str) -> None:
    assert result.code == 2, (result.out, result.err)
    said = " ".join((result.err + result.out).replace("│", " ").split())
    assert "Traceback" not in said
    for part in parts:
        assert part in said


def test_names_that_do_not_exist(cli: Cli) -> None:
    refused(cli("trian"), "unknown command 'trian'; did you mean train?")
    refused(cli("train", "text8/multinomal"), "unknown preset 'text8/multinomal'; did you mean text8/multinomial?")
    refused(cli("train"), "which preset?")
    refused(cli("train", "--steps", "3"), "which preset?")
    refused(cli("train", "text8/multinomial", "--size", "huge"), "unknown size 'huge'; expected tiny, small, paper")
    refused(cli(*TRAIN, "--batchsize", "3"), "--batch-size")
    refused(cli(*TRAIN, "--data", "txet:a"), "did you mean text:PATH?")
    refused(cli("evaluate", "run", "--spilt", "val"), "--split")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--steps", "0"), "--steps must be at least 1, got 0"),
        (("--steps", "-5"), "--steps must be at least 1, got -5"),
        (("--minutes", "-1"), "--minutes must be above 0, got -1"),
        (("--steps", "1", "--minutes", "1"), "give --steps or --minutes, not both"),
        (("--steps", "2", "--lr", "-1"), "--lr must be above 0, got -1"),
        (("--steps", "2", "--batch-size", "0"), "batch_size 0"),
        (("--steps", "2", "--checkpoint-every", "0"), "--checkpoint-every must be at least 1, got 0"),
        (("--steps", "2", "--length", "-3"), "length must be at least 1, got -3"),
        (("--steps", "2", "--threads", "0"), "--threads must be at least 1, got 0"),
        (("--steps", "2", "--device", "cuda"), "no device cuda here; available: cpu"),
        (("--steps", "2", "--data-split", "0.5,0.5"), "expected a split TRAIN,VAL,TEST"),
        (("--steps", "2", "--model.width", "15"), "width 15 must be a multiple"),
        (("--steps", "2", "--model.num-steps", "0"), "at least one step, got 0"),
        (("--steps", "two"), "two"),
        (("--steps", "2", "--lr", "nan"), "--lr must be above 0, got nan"),
        (("--steps", "2", "--seed", "-1"), "--seed must be between 0"),
        (("--steps", "2", "--seed", "99999999999999999999"), "--seed must be between 0"),
        (("--steps", "2", "--optim.matrix-lr", "nan"), "--optim.matrix-lr must be above 0"),
        (("--steps", "2", "--optim.clip", "-1"), "--optim.clip must be above 0, got -1"),
        (("--steps", "2", "--optim.ema", "2"), "--optim.ema must be at least 0 and below 1, got 2"),
        (("--steps", "2", "--optim.beta2", "2"), "--optim.beta2 must be at least 0 and below 1, got 2"),
        (("--steps", "2", "--optim.warmup", "-5"), "--optim.warmup must be at least 0, got -5"),
        (("--steps", "2", "--optim.weight-decay", "-3"), "--optim.weight-decay must be at least 0, got -3"),
        (("--steps", "2", "--model.num-blocks", "-2"), "num_blocks -2"),
        (("--steps", "2", "--model.window", "-1"), "window -1"),
        (("--steps", "2", "--model.width", "0"), "width 0"),
        (("--steps", "2", "--model.conv", "-3"), "must be odd"),
        (("--steps", "2", "--num-classes", "5"), "--num-classes 5 is for arrays"),
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
        (np.full((90, 8), 300), (), "has class 300"),
        (np.arange(90 * 64).reshape(90, 8, 8) % 3, (), "takes sequences"),
    ):
        np.save(tmp_path / "x.npy", array)
        refused(cli(*TRAIN, "--data", f"array:{tmp_path}/x.npy", *flags), message)


def test_runs_that_are_none(cli: Cli, trained: Path, tmp_path: Path) -> None:
    refused(cli("evaluate", "nowhere"), "no run at nowhere")
    (tmp_path / "empty").mkdir()
    refused(cli("sample", tmp_path / "empty"), "holds no config.json")
    half = tmp_path / "half"
    half.mkdir()
    shutil.copy(trained / "config.json", half)
    refused(cli("evaluate", half), "has no model.safetensors", "--resume")
    broken = tmp_path / "broken"
    shutil.copytree(trained, broken)
    weights = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    refused(cli("evaluate", broken), "truncated or damaged")
    (broken / "model.safetensors").write_bytes(weights)
    (broken / "config.json").write_text((broken / "config.json").read_text()[:100])
    refused(cli("sample", broken), "config.json is damaged")


def test_a_run_of_another_data_set(cli: Cli, trained: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 200, (90, 32)))
    refused(cli("evaluate", trained, "--data", f"array:{tmp_path}/x.npy"), "num_classes is 27")
    (tmp_path / "other.txt").write_text("UPPER CASE " * 200)
    refused(cli("evaluate", trained, "--data", f"text:{tmp_path}/other.txt"), "got 'U' at position 0")
    moved = tmp_path / "moved"
    shutil.copytree(trained, moved)
    config = json.loads((moved / "config.json").read_text())
    (tmp_path / "changed.txt").write_text("something else entirely " * 300)
    config["run"]["data"]["name"] = f"text:{tmp_path}/changed.txt"
    (moved / "config.json").write_text(json.dumps(config))
    refused(cli("evaluate", moved), "has changed since")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--num", "0"), "--num must be at least 1, got 0"),
        (("--length", "-4"), "--length must be at least 1, got -4"),
        (("--steps", "0"), "steps must be between 1 and 20"),
        (("--steps", "21"), "steps must be between 1 and 20"),
        (("--out", "no/such/folder/x.txt"), "no folder no/such/folder"),
        (("--chain", "."), "is a folder; expected a file"),
        (("--seed", "-1"), "--seed must be between 0"),
    ],
)
def test_samples_that_cannot_be_drawn(flags: tuple[str, ...], message: str, cli: Cli, trained: Path) -> None:
    refused(cli("sample", trained, *flags), message)


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
    refused(cli(*same, "--data", f"text:{other}"), "cannot resume", "data.name")


def test_text8_without_a_network(cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from unordinal.data import download

    monkeypatch.setenv("UNORDINAL_DATA", str(tmp_path / "cache"))
    monkeypatch.setitem(download.ARCHIVES, "text8", ("http://127.0.0.1:9/text8.zip", "a" * 64))
    refused(cli(*TRAIN), "could not download", str(tmp_path / "cache" / "downloads" / "text8.zip"), "a" * 64)


def test_a_damaged_checkpoint(cli: Cli, trained: Path, book: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(trained, broken)
    state = next((broken / "checkpoints").glob("*/state.pt"))
    state.write_bytes(state.read_bytes()[:1000])
    words = ("train", "text8/multinomial", *SMALL, "--steps", "20", "--data", f"text:{book}")
    refused(cli(*words, "--out", broken, "--resume"), "cannot be read")


def test_debug_shows_the_traceback(cli: Cli) -> None:
    with pytest.raises(ValueError, match="no run at nowhere"):
        cli("evaluate", "nowhere", "--debug")
