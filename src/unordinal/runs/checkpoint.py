"""Checkpoints: the whole state of a run, in a folder that appears only when it is whole and on disk.

Next to the state are notes with its size, its checksum and the model it belongs to. A checkpoint that does not agree
with its notes is renamed, not removed, and training continues from the one before it.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unordinal.data.storage import checksum_of, sync_folder
from unordinal.data.unpacking import read_json

STATE, NOTES = "state.pt", "notes.json"
FORMAT = 3  # increase this when what a checkpoint holds changes its meaning
KEPT = 2
NAME = re.compile(r"step-(\d{1,18})")
LARGEST_NOTES = 1 << 16  # bytes


class CheckpointError(ValueError):
    """A checkpoint is damaged, or of another version or model."""


def save_checkpoint(folder: Path, step: int, state: dict[str, Any], model: str = "") -> Path:
    """Write `state` as folder/step-N and keep the one before it; older ones go.

    Into a temporary folder first, fsynced, renamed: whatever happens on the way, the previous checkpoint stays. Two are
    kept because the newer one's weights are only known to be good when the next step's loss is a number, and because a
    disk may damage one of them.
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
        size, checksum = (temporary / STATE).stat().st_size, checksum_of(temporary / STATE)
        notes = {"unordinal": FORMAT, "step": step, "size": size, "sha256": checksum, "model": model}
        with (temporary / NOTES).open("w") as file:
            file.write(json.dumps(notes) + "\n")
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
    for old in sorted(checkpoints_in(folder), key=step_of)[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    for leftover in folder.glob(".writing-*"):  # of a process that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    return target


def model_identity(state: Mapping[str, Tensor]) -> str:
    """Return a short text that two models share if their weights have the same names, shapes and types."""
    described = [(name, list(value.shape), str(value.dtype)) for name, value in sorted(state.items())]
    return hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]


def checkpoints_in(folder: Path) -> list[Path]:
    """Return every checkpoint of a run, complete or damaged, in no order."""
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if NAME.fullmatch(path.name) and path.is_dir()]


def drop_checkpoint(folder: Path, step: int) -> Path | None:
    """Remove the checkpoint of `step`, whose weights have proved bad; return the one that is left."""
    shutil.rmtree(folder / f"step-{step:08d}", ignore_errors=True)
    return latest_checkpoint(folder)


def latest_checkpoint(folder: Path) -> Path | None:
    """Return the newest checkpoint, or None."""
    return max(checkpoints_in(folder), key=step_of, default=None)


def step_of(path: Path) -> int:
    match = NAME.fullmatch(path.name)
    assert match
    return int(match.group(1))


def load_checkpoint(path: Path, model: str = "") -> dict[str, Any]:
    """Return the state of a checkpoint after checking it against its notes.

    The state holds tensors and plain values only; no code is executed. A `CheckpointError` says what is wrong.
    """
    notes = read_notes(path)
    state = path / STATE
    if not state.is_file() or state.is_symlink():
        raise CheckpointError(f"the checkpoint {path} has no {STATE}")
    if state.stat().st_size != notes["size"]:
        raise CheckpointError(
            f"the checkpoint {path} is damaged: {STATE} has {state.stat().st_size:,} bytes, expected {notes['size']:,}"
        )
    if checksum_of(state) != notes["sha256"]:
        raise CheckpointError(f"the checkpoint {path} is damaged: the checksum of {STATE} is not the one noted")
    if model and notes["model"] and notes["model"] != model:
        raise CheckpointError(f"the checkpoint {path} is of another model: the shapes of its weights differ")
    try:
        return torch.load(state, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a file that somebody else made lets torch raise
        raise CheckpointError(f"the checkpoint {path} cannot be read ({error.__class__.__name__})") from error


def read_notes(path: Path) -> dict[str, Any]:
    """Return what is noted of a checkpoint, with every entry of the expected type."""
    try:
        if (path / NOTES).stat().st_size > LARGEST_NOTES:
            raise CheckpointError(f"the checkpoint {path} is damaged: {NOTES} is too long")
        notes = read_json(path / NOTES)
        version = notes["unordinal"]
        kinds = {"step": int, "size": int, "sha256": str, "model": str}
        is_whole = all(isinstance(notes.get(key), kind) for key, kind in kinds.items())
    except OSError as error:
        raise CheckpointError(f"the checkpoint {path} has no {NOTES} that can be read") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, CheckpointError):
            raise
        raise CheckpointError(f"the checkpoint {path} is damaged: {NOTES} cannot be read") from error
    if version != FORMAT:
        raise CheckpointError(
            f"the checkpoint {path} is of format {version!r}, and this version of unordinal reads format {FORMAT}"
        )
    if not is_whole:
        raise CheckpointError(f"the checkpoint {path} is damaged: {NOTES} lacks an entry")
    return notes


def load_newest(folder: Path, model: str, warn: Callable[[str], None]) -> dict[str, Any] | None:
    """Return the state of the newest checkpoint that is whole; None if there are no checkpoints.

    A checkpoint that cannot be used is renamed to damaged-step-N, and `warn` receives the reason. If none can be used,
    the last error is raised.
    """
    unusable: list[tuple[Path, CheckpointError]] = []
    for path in sorted(checkpoints_in(folder), key=step_of, reverse=True):
        try:
            state = load_checkpoint(path, model)
        except CheckpointError as error:
            unusable.append((path, error))
            continue
        for bad, reason in unusable:
            warn(f"{reason}; it is kept as {set_aside(bad).name}, and training continues from step {step_of(path)}")
        return state
    if unusable:
        raise CheckpointError(
            f"{unusable[0][1]}; no other checkpoint can be used: remove {folder} to start from the beginning"
        )
    return None


def set_aside(path: Path) -> Path:
    """Rename a checkpoint that cannot be used, so that another of its step can be written."""
    number = 1
    while (target := path.with_name(f"damaged-{path.name}" + (f"-{number}" if number > 1 else ""))).exists():
        number += 1
    path.rename(target)
    return target
