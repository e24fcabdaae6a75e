"""Checkpoints: whole or not there, two of them kept, and damage found by their checksums."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from unordinal.runs.checkpoint import (
    NOTES,
    STATE,
    CheckpointError,
    checkpoints_in,
    drop_checkpoint,
    latest_checkpoint,
    load_checkpoint,
    load_newest,
    model_identity,
    save_checkpoint,
    step_of,
)


def steps_in(folder: Path) -> list[int]:
    return sorted(step_of(path) for path in checkpoints_in(folder))


def test_the_last_two_are_kept_and_what_a_crash_left_goes(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert latest_checkpoint(folder) is None
    for step in (7, 14, 200_000_000, 21):  # a number of nine digits sorts by its value, not by its name
        (tmp_path / "checkpoints" / ".writing-1").mkdir(parents=True, exist_ok=True)
        path = save_checkpoint(folder, step, {"weights": torch.full((3,), float(step)), "step": step})
        assert load_checkpoint(path)["weights"].tolist() == [step] * 3
        assert not list(folder.glob(".writing-*"))
    assert steps_in(folder) == [21, 200_000_000]
    (folder / "notes").mkdir()
    assert latest_checkpoint(folder) == folder / "step-200000000"
    assert drop_checkpoint(folder, 200_000_000) == folder / "step-00000021"
    assert drop_checkpoint(folder, 21) is None


def test_a_checkpoint_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    first = save_checkpoint(tmp_path, 7, {"value": 1})
    assert save_checkpoint(tmp_path, 7, {"value": 2}) == first
    assert load_checkpoint(first) == {"value": 1}


def test_what_fails_while_writing_leaves_the_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(state: object, file: object) -> None:
        raise OSError(28, "No space left on device")

    def interrupted(state: object, file: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match=r"checkpoint of step 7 .*No space left.*; there is no earlier one"):
        save_checkpoint(tmp_path, 7, {})
    monkeypatch.undo()
    save_checkpoint(tmp_path, 7, {})
    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(OSError, match="the one of step 7 is kept"):
        save_checkpoint(tmp_path, 14, {})
    monkeypatch.setattr(torch, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, 14, {})
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000007"]


def truncated(path: Path) -> None:
    whole = (path / STATE).read_bytes()
    (path / STATE).write_bytes(whole[: len(whole) // 2])


def flipped(path: Path) -> None:
    raw = bytearray((path / STATE).read_bytes())
    raw[len(raw) // 2] ^= 1
    (path / STATE).write_bytes(raw)


def half_renamed(path: Path) -> None:
    (path / STATE).unlink()


def without_notes(path: Path) -> None:
    (path / NOTES).unlink()


def rewritten(**values: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        (path / NOTES).write_text(json.dumps({**json.loads((path / NOTES).read_text()), **values}))

    return change


def nested(path: Path) -> None:
    (path / NOTES).write_text("[" * 60_000)


def long(path: Path) -> None:
    (path / NOTES).write_text(" " * (1 << 17))


DAMAGE: list[tuple[Callable[[Path], None], str]] = [
    (truncated, r"damaged: state.pt has [\d,]+ bytes, expected"),
    (flipped, "damaged: the checksum of state.pt is not the one noted"),
    (half_renamed, "has no state.pt"),
    (without_notes, "has no notes.json"),
    (rewritten(unordinal=99), "is of format 99"),
    (rewritten(unordinal=2), "is of format 2, and this version of unordinal reads format 3"),
    (rewritten(model="another"), "is of another model"),
    (rewritten(size="many"), "notes.json lacks an entry"),
    (nested, "notes.json cannot be read"),
    (long, "notes.json is too long"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGE, ids=[reason for _, reason in DAMAGE])
def test_damage_is_named_and_the_checkpoint_before_is_used(
    damage: Callable[[Path], None], reason: str, tmp_path: Path
) -> None:
    model = model_identity(nn.Linear(2, 3).state_dict())
    said: list[str] = []
    save_checkpoint(tmp_path, 7, {"step": 7, "noise": torch.randn(100)}, model)
    newest = save_checkpoint(tmp_path, 14, {"step": 14, "noise": torch.randn(100)}, model)
    damage(newest)
    with pytest.raises(CheckpointError, match=reason):
        load_checkpoint(newest, model)
    state = load_newest(tmp_path, model, said.append)
    assert state is not None
    assert state["step"] == 7
    assert len(said) == 1
    assert "it is kept as damaged-step-00000014, and training continues from step 7" in said[0]
    assert steps_in(tmp_path) == [7]
    save_checkpoint(tmp_path, 14, {"step": 14}, model)  # its place is free
    assert load_newest(tmp_path, model, said.append) == {"step": 14}
    assert len(said) == 1


def test_without_a_checkpoint_that_can_be_used_nothing_is_touched(tmp_path: Path) -> None:
    assert load_newest(tmp_path / "none", "", print) is None
    flipped(save_checkpoint(tmp_path, 7, {"noise": torch.randn(100)}))
    with pytest.raises(CheckpointError, match=r"checksum .*no other checkpoint can be used: remove"):
        load_newest(tmp_path, "", print)
    assert steps_in(tmp_path) == [7]


class Malicious:
    def __init__(self, mark: Path):
        self.mark = mark

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.mark),)


def test_a_checkpoint_with_code_in_it_is_refused_though_its_checksum_fits(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 7, {"value": Malicious(tmp_path / "ran")})
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(path)
    assert not (tmp_path / "ran").exists()
