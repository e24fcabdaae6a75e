"""Folders of runs: made, read, moved, published, and refused where they are damaged."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from unordinal.api import load
from unordinal.config import RunConfig
from unordinal.data.arrays import ArraySource
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.overrides import with_settings
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder

SPEC = DataSpec("docs", 3, (8,))
CONFIG = with_settings(configured("arm"), {"net.width": 8, "num_blocks": 1, "num_heads": 1, "steps": 3})


def made(folder: RunFolder, config: RunConfig = CONFIG, spec: DataSpec = SPEC, seed: int = 0) -> CategoricalModel:
    """A run whose weights are published, without training."""
    folder.create(config, spec)
    torch.manual_seed(seed)
    model = config.model.build(spec)
    folder.publish(model.state_dict(), {"step": 3})
    return model


def test_what_was_written_is_read(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new" / "run")
    assert not folder.is_run
    model = made(folder)
    assert folder.is_run
    assert folder.read() == (CONFIG, SPEC)
    assert folder.published_step == 3
    run = load(folder.path)
    assert not run.model.training
    assert run.config == CONFIG
    for name, value in model.state_dict().items():
        assert torch.equal(value, run.model.state_dict()[name]), name
    assert run.vocabulary is None
    with pytest.raises(ValueError, match="already holds a run; add `resume`"):
        folder.create(CONFIG, SPEC)
    with pytest.raises(ValueError, match="is not an empty folder; choose another `out`"):
        RunFolder(folder.path.parent).create(CONFIG, SPEC)


def test_a_run_that_moves_with_its_data_finds_them(tmp_path: Path) -> None:
    """No path of this machine is written down: those of data are relative to the run's folder."""
    here = tmp_path / "here"
    here.mkdir()
    np.save(here / "x.npy", np.arange(160).reshape(20, 8) % 3)
    config = replace(CONFIG, data=ArraySource(str(here / "x.npy"), num_classes=3))
    spec = config.data.load().spec
    folder = RunFolder(here / "runs" / "one")
    folder.create(config, spec)
    written = json.loads(folder.config.read_text())
    assert written["run"]["data"]["kind"] == "ArraySource"
    assert written["run"]["data"]["path"] == "../../x.npy"
    assert written["data"]["name"] == "array:../../x.npy"
    assert written["unordinal"] == 3
    assert str(tmp_path) not in folder.config.read_text()
    assert folder.read()[0] == config
    shutil.move(here, tmp_path / "there")
    found, _ = RunFolder(tmp_path / "there" / "runs" / "one").read()
    assert found.data.name == f"array:{tmp_path / 'there' / 'x.npy'}"
    assert found.data.load().spec.fingerprint == spec.fingerprint


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"no run at {tmp_path}/none"):
        load(tmp_path / "none")
    with pytest.raises(ValueError, match=r"holds no config\.json"):
        load(tmp_path)
    folder = RunFolder(tmp_path / "run")
    made(folder)
    whole = json.loads(folder.config.read_text())
    for damage, message in (
        ("{", r"config\.json is damaged"),
        (json.dumps({**whole, "unordinal": 1}), "it is of format 1, and this version reads format 3"),
        (json.dumps({"unordinal": 3}), "is damaged: 'run'"),
        (json.dumps({**whole, "run": {**whole["run"], "recipe": "arn"}}), "unknown recipe 'arn'; did you mean arm"),
    ):
        folder.config.write_text(damage)
        with pytest.raises(ValueError, match=message):
            load(folder.path)


def test_weights_that_are_missing_damaged_or_others_are_refused(tmp_path: Path) -> None:
    folder, other = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "other")
    made(folder)
    made(other, with_settings(CONFIG, {"num_blocks": 2}))
    whole = folder.weights.read_bytes()
    folder.weights.write_bytes(whole[:-10])
    assert folder.published_step is None
    with pytest.raises(ValueError, match="truncated or damaged"):
        load(folder.path)
    folder.weights.write_bytes(other.weights.read_bytes())
    with pytest.raises(ValueError, match="does not fit the model"):
        load(folder.path)
    folder.weights.unlink()
    assert folder.published_step is None
    with pytest.raises(ValueError, match=r"has no model\.safetensors: training stopped before its first validation"):
        load(folder.path)


def test_a_failure_while_publishing_keeps_the_old_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path / "run")
    model = made(folder)
    before = folder.weights.read_bytes()

    def full(*_: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("unordinal.runs.folder.safetensors.torch.save", full)
    with pytest.raises(OSError, match=r"could not write .*model\.safetensors .*No space left.*the checkpoint is kept"):
        folder.publish(model.state_dict(), {"step": 4})
    assert folder.weights.read_bytes() == before
    assert sorted(path.name for path in folder.path.iterdir()) == ["config.json", "model.safetensors"]
