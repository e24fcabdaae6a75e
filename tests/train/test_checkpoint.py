"""Checkpoints: whole or not there, two of them kept, and random numbers that go on where they were."""

from pathlib import Path

import pytest
import torch

from unordinal.train.checkpoint import (
    STATE,
    drop_checkpoint,
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
    step_of,
    whole_checkpoints,
)


def steps_in(folder: Path) -> list[int]:
    return sorted(step_of(path) for path in whole_checkpoints(folder))


def test_the_last_two_are_kept_and_what_a_crash_left_goes(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    assert latest_checkpoint(folder) is None
    for step in (7, 14, 200_000_000, 21):  # a number of nine digits sorts by its value, not by its name
        (tmp_path / "checkpoints" / ".writing-1").mkdir(parents=True, exist_ok=True)
        path = save_checkpoint(folder, step, {"weights": torch.full((3,), float(step)), "step": step})
        assert load_checkpoint(path)["weights"].tolist() == [step] * 3
        assert not list(folder.glob(".writing-*"))
    assert steps_in(folder) == [21, 200_000_000]
    (folder / "step-99999999999").mkdir()  # without its file it is none
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


def test_a_damaged_checkpoint_is_named_and_no_code_is_run(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, 7, {"value": torch.zeros(100)})
    whole = (path / STATE).read_bytes()
    for damage in (b"", whole[:200], b"x" * 500):
        (path / STATE).write_bytes(damage)
        with pytest.raises(ValueError, match=f"the checkpoint {path} cannot be read"):
            load_checkpoint(path)
    torch.save({"path": Path("x")}, path / STATE)  # a class, which to load would be to run
    with pytest.raises(ValueError, match="cannot be read"):
        load_checkpoint(path)
