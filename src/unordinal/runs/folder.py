"""A run's folder: config.json, model.safetensors, metrics.jsonl, checkpoints/, plots/."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from unordinal.config import RunConfig
from unordinal.data.spec import DataSpec
from unordinal.data.storage import replacing
from unordinal.data.unpacking import UnpackingError, check_links, parse_json, read_json
from unordinal.model import CategoricalModel
from unordinal.runs.lock import NAME as LOCK

FORMAT = 3  # of config.json; raise when its meaning changes
OWN_FILES = ("config.json", "model.safetensors", "metrics.jsonl", "checkpoints", "plots", "plots/loss.png", LOCK)
LARGEST_HEADER = 16 << 20  # bytes of the header of model.safetensors, which lists its tensors


@dataclass(frozen=True)
class RunFolder:
    """The files of a run; `may_link` allows them to be links to files elsewhere."""

    path: Path
    may_link: bool = False

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def weights(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def plots(self) -> Path:
        return self.path / "plots"

    @property
    def is_run(self) -> bool:
        return self.config.is_file()

    def create(self, config: RunConfig, spec: DataSpec) -> None:
        """Make the folder of a new run; raise a ValueError if it holds anything."""
        for prefix in ("pretrained:", "hf:"):
            if str(self.path).startswith(prefix):
                raise ValueError(f"{self.path} is the name of a trained model, not a folder; choose another `out`")
        if self.is_run:
            raise ValueError(f"{self.path} already holds a run; add `resume` to continue it, or choose another `out`")
        if self.path.exists() and (not self.path.is_dir() or any(path.name[0] != "." for path in self.path.iterdir())):
            raise ValueError(f"{self.path} is not an empty folder; choose another `out`")
        self.write_config(config, spec)

    def write_config(self, config: RunConfig, spec: DataSpec) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with replacing(self.config) as file:
                root = self.path.resolve()  # paths are relative to it, so that run and data can be moved together
                data = config.data.moved(lambda path: Path(os.path.relpath(path, root)).as_posix())
                there = replace(spec, name=data.name if spec.name == config.data.name else spec.name)
                here = replace(config, data=data)
                described = {"unordinal": FORMAT, "run": here.to_dict(), "data": there.to_dict()}
                file.write((json.dumps(described, indent=2) + "\n").encode())
        except OSError as error:
            raise ValueError(f"cannot write to {self.path}: {error.strerror}; choose another `out`") from error

    def read(self) -> tuple[RunConfig, DataSpec]:
        """Return the configuration of the run and the description of its data."""
        if not self.path.exists():
            raise ValueError(f"no run at {self.path}; expected a folder that `unordinal train` made")
        if not self.is_run:
            raise ValueError(f"{self.path} holds no config.json; expected a folder that `unordinal train` made")
        try:
            check_links(self.path, [] if self.may_link else [self.path / name for name in OWN_FILES])
            described = read_json(self.config)
            if described["unordinal"] != FORMAT:
                raise ValueError(f"it is of format {described['unordinal']}, and this version reads format {FORMAT}")
            config, spec = RunConfig.from_dict(described["run"]), DataSpec.from_dict(described["data"])
            data = config.data.moved(lambda path: str((self.path.resolve() / path).resolve()))
            return replace(config, data=data), spec
        except UnpackingError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
            raise ValueError(f"{self.config} is damaged: {error}") from error

    def publish(self, weights: Mapping[str, Tensor], notes: dict[str, Any]) -> None:
        """Write weights to model.safetensors, whole or not at all, with `notes` on them."""
        tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
        try:
            with replacing(self.weights) as file:
                # one entry: the order of several would differ from file to file, and so would their checksums
                file.write(safetensors.torch.save(tensors, {"unordinal": json.dumps(notes, sort_keys=True)}))
        except OSError as error:
            raise OSError(f"could not write {self.weights} ({error}); the checkpoint is kept") from error

    @property
    def published_step(self) -> int | None:
        """The step whose weights model.safetensors holds; None where it is missing or damaged."""
        note = self.published_notes.get("step")
        return None if note is None else int(note)

    @property
    def published_bits(self) -> float | None:
        """The validation bound of the published weights; None where they were never validated."""
        note = self.published_notes.get("val_bits_per_dim")
        return None if note is None else float(note)

    @property
    def published_notes(self) -> dict[str, Any]:
        """The notes that `publish` wrote with the weights; empty if they are missing or the file is damaged."""
        try:
            with safetensors.safe_open(self.weights, "pt") as file:
                notes = file.metadata() or {}
                return parse_json(notes["unordinal"]) if "unordinal" in notes else dict(notes)
        except (safetensors.SafetensorError, OSError, ValueError):
            return {}

    def copy_to(self, path: Path) -> None:
        """Copy the run's configuration and weights, all that a model is, into a new folder."""
        other = RunFolder(path)
        config, spec = self.read()
        other.create(config, spec)
        with replacing(other.weights) as file:
            file.write(self.weights.read_bytes())

    def check_weights(self) -> None:
        """Raise a ValueError if the published weights, where there are any, are not a whole file of tensors."""
        if not self.weights.exists():
            return
        check_header(self.weights)
        try:
            with safetensors.safe_open(self.weights, "pt"):
                pass
        except (safetensors.SafetensorError, OSError) as error:
            raise ValueError(
                f"{self.weights} is truncated or damaged ({error}); training with `resume` writes it again"
            ) from error

    def read_weights(self) -> dict[str, Tensor]:
        """Return the published weights by name."""
        if not self.weights.exists():
            raise ValueError(
                f"{self.path} has no model.safetensors: training stopped before its first validation; "
                "train it with the same settings and `resume`"
            )
        self.check_weights()
        return safetensors.torch.load_file(self.weights)

    def load_weights(self, model: CategoricalModel) -> None:
        """Load the published weights into a model."""
        tensors = self.read_weights()
        try:
            model.load_state_dict(tensors)
        except RuntimeError as error:
            raise ValueError(f"{self.weights} does not fit the model of {self.config}: {error}") from error


def check_header(path: Path) -> None:
    """Raise a ValueError if the header of a .safetensors file is of absurd size."""
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
    if size > min(LARGEST_HEADER, path.stat().st_size):
        raise ValueError(f"{path} is truncated or damaged: its header states a size of {size:,} bytes")


@dataclass(frozen=True)
class RunEntry:
    """A run in a list of them."""

    path: Path
    preset: str
    size: str
    data: str
    bits: float | None  # of the best validation; None before the first one
    when: str  # its last change, local time


def list_runs(folder: Path) -> list[RunEntry]:
    """Return the runs below a folder, the newest first; skip folders that cannot be read."""
    found: list[tuple[float, RunEntry]] = []
    for config in folder.rglob("config.json"):
        run = RunFolder(config.parent)
        try:
            described, spec = run.read()
        except ValueError:
            continue
        changed = max(path.stat().st_mtime for path in (config, run.weights, run.metrics) if path.exists())
        kind, colon, argument = spec.name.partition(":")
        entry = RunEntry(
            path=run.path,
            preset=described.preset,
            size=described.size,
            data=f"{kind}:{Path(argument).name}" if colon else kind,
            bits=run.published_bits,
            when=time.strftime("%Y-%m-%d %H:%M", time.localtime(changed)),
        )
        found.append((changed, entry))
    return [entry for _, entry in sorted(found, key=lambda pair: -pair[0])]
