"""What several commands need."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from unordinal.console import say
from unordinal.settings import Flag, Range

if TYPE_CHECKING:
    import torch

    from unordinal.api import Run


@dataclass(frozen=True, kw_only=True)
class MachineArgs:
    """A base of the arguments of commands that compute."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Device to compute on; auto takes cuda, then mps, then the cpu."""
    threads: Annotated[int | None, Range(1)] = None
    """CPU threads; default torch's choice."""
    json: bool = False
    """End with one JSON object on stdout."""

    def chosen_device(self) -> "torch.device":
        """Return the device, after setting the number of threads."""
        import torch

        from unordinal.train.start import device_named

        if self.threads is not None:
            if self.threads < 1:
                raise ValueError(f"--threads must be at least 1, got {self.threads}")
            torch.set_num_threads(self.threads)
        return device_named(self.device)

    def load(self, reference: str) -> "Run":
        """Load a run on the device."""
        from unordinal.api import load

        return load(reference, device=self.chosen_device())


@dataclass(frozen=True, kw_only=True)
class BlockArgs(MachineArgs):
    """A base of the arguments of commands that score or sample a run."""

    block: Annotated[int | Literal["all"] | None, Range(1), Flag(metavar="N|all")] = None
    """Models of blocks: the number of positions of a block; 1 is autoregressive and exact, all a masked diffusion.
    Default the size that the model was trained for."""

    def load(self, reference: str) -> "Run":
        run = super().load(reference)
        if self.block is None:
            return run
        other, blocks = run.at(self.block), run.model.blocks
        sizes = () if blocks is None else blocks.sizes
        size = run.spec.event_shape[0] if self.block == "all" else self.block
        if size not in sizes:
            trained = ", ".join(map(str, sizes))
            say(f"Note: this model was trained with blocks of {trained}; those of {self.block} may score worse.")
        return other


def peak_memory_megabytes() -> int | None:
    """Return the most memory that this process has held, if the platform tells."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // scale


def check_output(path: Path | None) -> None:
    """Raise a ValueError if a file cannot be written, before the work that fills it."""
    if path is None:
        return
    if not path.parent.is_dir():
        raise ValueError(f"no folder {path.parent} to write {path.name} to")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; expected a file to write to")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ValueError(f"no permission to write {path}")


def text_of(path: Path) -> str:
    """Return the text of a small file."""
    try:
        return path.expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot read {path}: {error}") from error


# Settings whose options have another name than they have in Python.
FLAGS = {"split": "--data-split", "map_height": "--height", "map_width": "--width", "num_samples": "--num"}
SETTING = re.compile(r"`([a-z][a-z0-9_.]*)`")


def as_flags(message: str, options: frozenset[str] | None = None) -> str:
    """Return a message of the library with its settings, which stand in backticks, written as options.

    Args:
        message: the message.
        options: the options that the command has; a setting that is not one of them keeps its name.

    >>> as_flags("`lr` must be above 0; see `optim.matrix_lr`")
    '--lr must be above 0; see --optim.matrix-lr'
    >>> as_flags("`bits` is for text", frozenset({"--lr"}))
    'bits is for text'
    """

    def replaced(match: "re.Match[str]") -> str:
        name = match[1]
        plain = f"--{name.replace('_', '-')}"
        for flag in (plain, FLAGS.get(name, plain)):
            if options is None or flag in options:
                return FLAGS.get(name, flag) if options is None else flag
        ends = [option for option in options or () if option.endswith(f".{plain[2:]}")]
        return ends[0] if len(ends) == 1 else name

    return SETTING.sub(replaced, message)
