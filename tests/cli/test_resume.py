"""`unordinal train --out RUN --resume`: a run continues under its own settings."""

import json
import shutil
from pathlib import Path

from conftest import SMALL, Cli, refused

import unordinal

TRAIN = ("train", "text8/multinomial", *SMALL, "--steps", "2")


def test_resuming_where_the_data_have_moved(cli: Cli, book: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved.txt"
    shutil.copy(book, moved)
    assert cli(*TRAIN, "--data", f"text:{book}", "--out", "run").code == 0
    longer = cli(*TRAIN[:-1], "3", "--data", f"text:{moved}", "--out", "run", "--resume", "--json")
    assert longer.code == 0, longer.err
    assert longer.json["steps"] == 3
    assert unordinal.load("run").config.data.name == f"text:{moved.resolve()}"


def test_a_run_is_resumed_without_its_settings_being_said_again(cli: Cli, book: Path) -> None:
    words = ("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--seed", 3, "--optim.no-decay-to-zero")
    assert cli(*words, "--steps", 4, "--out", "half").code == 0
    longer = cli("train", "--out", "half", "--resume", "--steps", 8, "--json")
    assert longer.code == 0, longer.err
    assert longer.json["steps"] == 8
    assert cli(*words, "--steps", 8, "--out", "whole").code == 0
    half, whole = (cli("evaluate", run, "--json").json["bits_per_dim"] for run in ("half", "whole"))
    assert half == whole  # as if it had never stopped
    told = "half is already finished (8 steps). Budgets count from the start of the run: give a larger one to continue."
    for again in (("train", "--resume", "--out=half"), (*words, "--steps", 8, "--out", "half", "--resume")):
        finished = cli(*again)
        assert finished.code == 0
        assert told in finished.err


def test_a_resumed_run_may_have_another_rate_and_its_data_elsewhere(cli: Cli, book: Path, tmp_path: Path) -> None:
    shutil.copy(book, tmp_path / "first.txt")
    assert cli(*TRAIN, "--data", "first.txt", "--out", "run").code == 0
    (tmp_path / "first.txt").rename(tmp_path / "second.txt")
    refused(cli("train", "--out", "run", "--resume", "--steps", 3), "there is no file", "first.txt")
    words = ("train", "--out", "run", "--resume", "--steps", 3, "--lr", 0.5, "--data", "second.txt", "--json")
    longer = cli(*words)
    assert longer.code == 0, longer.err
    assert longer.json["steps"] == 3
    config = unordinal.load("run").config
    assert (config.train.lr, config.train.steps) == (0.5, 3)
    assert config.data.name == f"text:{tmp_path / 'second.txt'}"
    assert (config.data.alphabet, config.data.length) == ("text8", 32)  # type: ignore[attr-defined]


def test_what_cannot_be_resumed_is_refused(cli: Cli, trained: Path, tmp_path: Path) -> None:
    refused(cli("train", "--out", "nowhere", "--resume"), "no run at nowhere")
    zero = cli("train", "--out", trained, "--resume", "--steps", 0)
    refused(zero, "--steps must be a whole number of at least 1, got 0")
    refused(cli("train", "--out", trained, "--resume", "--seed", 5), "unknown option '--seed'")
    own = tmp_path / "own"
    shutil.copytree(trained, own)
    config = json.loads((own / "config.json").read_text())
    config["run"]["recipe"] = "custom"
    config["run"]["model"] = {"kind": "OwnModel", "made_by": "Mine"}
    (own / "config.json").write_text(json.dumps(config))
    refused(cli("train", "--out", own, "--resume"), "was made in Python; continue it there")
