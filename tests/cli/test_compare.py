"""`unordinal compare`: two runs on the same examples."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, refused


def test_a_run_against_itself_differs_by_nothing(cli: Cli, trained: Path, tmp_path: Path) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    result = cli("compare", trained, tmp_path / "copy", "--json")
    assert result.code == 0, result.err
    assert result.json["difference"] == 0
    assert "they cannot be told apart" in result.out
    assert result.json["unit"] == "bits per character"


def test_different_models_of_one_text(cli: Cli, trained: Path, trained_flow: Path, book: Path) -> None:
    result = cli("compare", trained, trained_flow, "--data", book, "--num-examples", 3, "--json")
    assert result.code == 0, result.err
    values = result.json
    assert values["difference"] == pytest.approx(values["second"] - values["first"])
    assert values["num_examples"] == 3


def test_runs_of_other_classes_are_refused(cli: Cli, trained: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 5, (60, 8)))
    words = ("--data", tmp_path / "x.npy", "--steps", 1, "--model.net.width", 8, "--model.net.num-heads", 1)
    assert cli("train", "arm", *words, "--out", "other").code == 0
    refused(cli("compare", trained, "other"), "is of another data set than other")
    refused(cli("compare", trained, "nowhere"), "no run at nowhere")
