"""Checkpoints: the whole state of a run, in a folder that appears only when it is whole and on disk."""

import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch

from unordinal.data.storage import sync_folder

STATE = "state.pt"
KEPT = 2
NAME = re.compile(r"step-(\d+)")


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `state` as folder/step-N and keep the one before it; older ones go.

    Into a temporary folder first, fsynced, renamed: whatever happens on the way, the previous checkpoint stays. Two are
    kept because the newer one's weights are only known to be good when the next step's loss is a number.
    """
    target = folder / f"step-{step:08d}"
    if target.exists():
        return target
    temporary = folder / f".writing-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        with (temporary / STATE).open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(temporary)
        temporary.rename(target)
        sync_folder(folder)
    except (OSError, RuntimeError) as error:
        shutil.rmtree(temporary, ignore_errors=True)
        kept = latest_checkpoint(folder)
        left = f"the one of step {step_of(kept)} is kept" if kept else "there is no earlier one"
        raise OSError(f"could not write the checkpoint of step {step} to {folder} ({error}); {left}") from error
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    for old in sorted(whole_checkpoints(folder), key=step_of)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    for leftover in folder.glob(".writing-*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    return target


def whole_checkpoints(folder: Path) -> list[Path]:
    """Every whole checkpoint of a run, in no order."""
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if NAME.fullmatch(path.name) and (path / STATE).exists()]


def drop_checkpoint(folder: Path, step: int) -> Path | None:
    """Remove the checkpoint of `step`, whose weights have proved bad; return the one that is left."""
    shutil.rmtree(folder / f"step-{step:08d}", ignore_errors=True)
    return latest_checkpoint(folder)


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    return max(whole_checkpoints(folder), key=step_of, default=None)


def step_of(path: Path) -> int:
    match = NAME.fullmatch(path.name)
    assert match
    return int(match.group(1))


def load_checkpoint(path: Path) -> dict[str, Any]:
    """The state; tensors and plain values only, no code is executed."""
    try:
        return torch.load(path / STATE, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a damaged file makes torch raise
        raise ValueError(f"the checkpoint {path} cannot be read ({error.__class__.__name__}); remove it") from error
