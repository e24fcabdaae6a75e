"""Checkpoints: the whole state of a run, in a folder that appears only when it is whole and on disk."""

import contextlib
import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unordinal.data.storage import sync_folder

STATE = "state.pt"
NAME = re.compile(r"step-(\d+)")


def save_checkpoint(folder: Path, step: int, state: dict[str, Any]) -> Path:
    """Write `state` as folder/step-N, then remove the older ones.

    Into a temporary folder first, fsynced, renamed: whatever happens on the way, the previous checkpoint stays.
    """
    target = folder / f"step-{step:08d}"
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
        if target.exists():  # the same step again, after a resume: the old one is as good until the new one is there
            shutil.rmtree(target)
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
    for old in folder.iterdir():
        if old != target and (NAME.fullmatch(old.name) or old.name.startswith(".writing-")):
            shutil.rmtree(old, ignore_errors=True)
    return target


def latest_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint, or None."""
    if not folder.is_dir():
        return None
    found = [path for path in folder.iterdir() if NAME.fullmatch(path.name) and (path / STATE).exists()]
    return max(found, key=step_of, default=None)


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


def rng_state() -> dict[str, Any]:
    """The state of every random number generator a training step may use."""
    version, internal, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    state: dict[str, Any] = {
        "torch": torch.get_rng_state(),
        "python": [version, list(internal), gauss],
        "numpy": [torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
    }
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_rng_state(state: dict[str, Any]) -> None:
    """Put every generator back where `rng_state` found it."""
    torch.set_rng_state(state["torch"])
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), position, has_gauss, cached))
    if "cuda" in state and torch.cuda.is_available():
        with contextlib.suppress(IndexError):  # fewer devices than before
            torch.cuda.set_rng_state_all(state["cuda"])
    if "mps" in state and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])
