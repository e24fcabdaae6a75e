"""What several commands need."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Device = Literal["auto", "cpu", "cuda", "mps"]


@dataclass(frozen=True)
class MachineArgs:
    """Where to compute."""

    device: Device = "auto"
    """auto takes cuda, then mps, then the cpu."""
    threads: int | None = None
    """CPU threads; default torch's choice."""


def chosen_device(machine: MachineArgs) -> "torch.device":
    """The device asked for, and the number of threads set."""
    import torch

    if machine.threads is not None:
        if machine.threads < 1:
            raise ValueError(f"--threads must be at least 1, got {machine.threads}")
        torch.set_num_threads(machine.threads)
    has_mps = torch.backends.mps.is_available() and os.environ.get("WORLD_SIZE", "1") == "1"  # gloo cannot reach it
    available = {"cuda": torch.cuda.is_available(), "mps": has_mps, "cpu": True}
    if machine.device == "auto":
        return torch.device(next(name for name, there in available.items() if there))
    if not available[machine.device]:
        there = [name for name, is_there in available.items() if is_there]
        raise ValueError(f"no device {machine.device} here; available: {', '.join(there)}")
    return torch.device(machine.device)


def peak_memory_megabytes() -> int | None:
    """Most memory this process has held, where the platform tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // scale


def check_output(path: Path | None) -> None:
    """Refuse a file that cannot be written, before the work that fills it."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise ValueError(f"no folder {path.parent} to write {path.name} to")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a file to write to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"no permission to write {path}")


def text_of(path: Path) -> str:
    """The text of a small file."""
    try:
        return path.expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


def check_seed(seed: int) -> None:
    if not 0 <= seed < 2**63:
        raise ValueError(f"--seed must be between 0 and {2**63 - 1}, got {seed}")


# Settings whose flags have another name than they have in Python.
FLAGS = {
    "split": "--data-split",
    "map_height": "--height",
    "map_width": "--width",
    "num_samples": "--num",
}
SETTING = re.compile(r"`([a-z][a-z0-9_.]*)`")


def as_flags(message: str) -> str:
    """A message of the library with its settings, which stand in backticks, written as flags.

    >>> as_flags("`lr` must be above 0; see `optim.matrix_lr`")
    '--lr must be above 0; see --optim.matrix-lr'
    """
    return SETTING.sub(lambda match: FLAGS.get(match[1], f"--{match[1].replace('_', '-')}"), message)
