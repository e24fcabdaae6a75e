"""Many samples in a folder: the same whatever was interrupted, and damage found by the checksums."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import Cli, refused

from unordinal.api import Run, load
from unordinal.parallel.group import Group
from unordinal.tasks.shards import MANIFEST, Plan, draw_shards, file_name, weights_identity


@pytest.fixture(scope="module")
def run() -> Run:
    return load("pretrained:text8-arm")


SETTINGS: dict[str, Any] = {"event_shape": (3,)}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_what_is_missing_is_drawn_and_the_rest_left(run: Run, tmp_path: Path) -> None:
    plan = Plan(weights_identity(run.model.state_dict()), 70, batch_size=1, seed=3, settings=SETTINGS)
    said: list[str] = []
    assert draw_shards(run.model, run.spec, tmp_path / "a", plan) == 3
    whole = content(tmp_path / "a")
    assert len(whole) == 7
    x = [np.load(tmp_path / "a" / file_name(index)) for index in range(3)]
    assert [part.shape for part in x] == [(32, 3), (32, 3), (6, 3)]
    texts = (tmp_path / "a" / file_name(2)).with_suffix(".jsonl").read_text().splitlines()
    assert [json.loads(text) for text in texts] == [run.spec.show(torch.from_numpy(row)) for row in x[2]]
    assert not (x[0] == x[1]).all()
    assert draw_shards(run.model, run.spec, tmp_path / "a", plan) == 0
    (tmp_path / "a" / file_name(1)).unlink()
    (tmp_path / "a" / file_name(2)).write_bytes(b"damaged")
    (tmp_path / "a" / file_name(0)).with_suffix(".jsonl").write_text("damaged")
    assert draw_shards(run.model, run.spec, tmp_path / "a", plan, warn=said.append) == 3
    assert len(said) == 2
    assert all("does not have the checksum" in text for text in said)
    assert content(tmp_path / "a") == whole
    other = Plan(plan.model, 70, batch_size=1, seed=4, settings=SETTINGS)
    with pytest.raises(ValueError, match=r"drawn otherwise \(other seed\)"):
        draw_shards(run.model, run.spec, tmp_path / "a", other)
    with pytest.raises(ValueError, match="is a file"):
        draw_shards(run.model, run.spec, tmp_path / "a" / MANIFEST, plan)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    with pytest.raises(ValueError, match="is not empty"):
        draw_shards(run.model, run.spec, tmp_path / "full", plan)


def test_processes_share_the_files_out() -> None:
    shares = [list(Group(rank, 3).turns(7)) for rank in range(3)]
    assert sorted(index for share in shares for index in share) == list(range(7))


@pytest.mark.parametrize(
    "damage",
    ["", "[" * 100_000, "{}", "[]", '{"unordinal": 1, "plan": {}, "files": [{"file": "../../x", "sha256": "a"}]}'],
)
def test_a_damaged_manifest_is_refused(damage: str, run: Run, tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text(damage)
    with pytest.raises(ValueError, match="cannot be read"):
        draw_shards(run.model, run.spec, tmp_path, Plan("", 1, settings=SETTINGS))


def test_the_command_writes_a_folder_and_goes_on_with_it(cli: Cli, tmp_path: Path) -> None:
    words = (
        "sample",
        "pretrained:text8-arm",
        "--num",
        40,
        "--batch-size",
        1,
        "--length",
        4,
        "--out",
        tmp_path / "many",
    )
    first = cli(*words)
    assert first.code == 0, first.err
    assert "40 samples in 2 files" in first.err
    assert "0 files drawn now" in cli(*words).err
    refused(cli(*words, "--temperature", "0.5"), "drawn otherwise (other settings)")
    refused(cli(*words, "--json"), "is a folder of samples")
    refused(cli(*words[:3], 40, "--batch-size", 0), "--batch-size must be a whole number of at least 1")
