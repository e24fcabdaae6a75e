"""Many samples in a folder: files of equal size, drawn by any number of processes, and a manifest of what they hold.

A file appears when it is complete. After an interruption, the same command draws what is missing. The random numbers
of a file depend on the seed and on its number, so that the samples do not depend on how many processes drew them.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unordinal.data.spec import DataSpec, smallest_type
from unordinal.data.storage import checksum_of, replacing
from unordinal.data.unpacking import read_json
from unordinal.model import CategoricalModel
from unordinal.parallel.group import ALONE, Group
from unordinal.parallel.randomness import mixed_seed
from unordinal.progress import Progress, silent
from unordinal.tasks.asking import BATCH
from unordinal.tasks.drawing import draw

FORMAT = 1  # of the manifest
BATCHES = 32  # in a file
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Plan:
    """What a folder of samples holds; equal plans give the same samples.

    Args:
        model: identifies the weights, for instance by their checksum.
        num: how many samples.
        batch_size: how many are drawn at a time.
        seed: the seed of the random numbers.
        settings: what is passed on to the model's `sample`.
    """

    model: str
    num: int
    batch_size: int = BATCH
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def per_file(self) -> int:
        return self.batch_size * BATCHES

    @property
    def num_files(self) -> int:
        return -(-self.num // self.per_file)

    def num_in(self, index: int) -> int:
        """Return how many samples a file holds.

        >>> [Plan("", 2500).num_in(index) for index in range(3)]
        [1024, 1024, 452]
        """
        return min(self.per_file, self.num - index * self.per_file)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values; those of tensors as lists."""
        settings = {
            name: value.tolist() if isinstance(value, Tensor) else value for name, value in self.settings.items()
        }
        return json.loads(json.dumps({**vars(self), "settings": settings, "per_file": self.per_file}))


def weights_identity(state: Mapping[str, Tensor]) -> str:
    """Return a checksum of a model's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(state.items()):
        digest.update(f"{name} {tuple(value.shape)} {value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def file_name(index: int) -> str:
    return f"samples-{index:06d}.npy"


def draw_shards(
    model: CategoricalModel,
    spec: DataSpec,
    folder: Path,
    plan: Plan,
    *,
    group: Group = ALONE,
    progress: Progress = silent,
    warn: Callable[[str], None] = warnings.warn,
    drawn: Callable[[int, int], Tensor] | None = None,
) -> int:
    """Draw the files that are missing and write the manifest; return how many files all processes drew.

    Classes are written as .npy files. If they stand for text, a .jsonl file next to each holds the text, one JSON
    string per sample. `drawn` draws a number of samples with a seed; by default `plan` says how.
    """

    def by_plan(num: int, seed: int) -> Tensor:
        return draw(model, num, seed=seed, batch_size=plan.batch_size, **plan.settings).x

    with group.one_first():
        if group.is_first:
            prepare(folder, plan, warn)
        missing = [index for index in range(plan.num_files) if not is_there(folder, index, spec)]
    missing = group.broadcast(missing)  # others may look when some are there already
    count = 0
    total = sum(plan.num_in(index) for index in missing)
    with group.progress(progress, "Sampling", total) as advance:
        for turn in group.turns(len(missing)):
            index = missing[turn]
            seed = mixed_seed(plan.seed, index, 0)  # 63 bits, all of which count
            write_shard(folder, index, (drawn or by_plan)(plan.num_in(index), seed).numpy(), spec)
            advance(plan.num_in(index))
            count += 1
    count = int(group.summed(torch.tensor(count)))  # which waits for all
    if group.is_first:
        write_manifest(folder, plan, spec)
    return count


def is_there(folder: Path, index: int, spec: DataSpec) -> bool:
    path = folder / file_name(index)
    return path.is_file() and (spec.vocabulary is None or path.with_suffix(".jsonl").is_file())


def write_shard(folder: Path, index: int, x: np.ndarray, spec: DataSpec) -> None:
    """Write the samples of a file; `is_there` looks for the file that is written last."""
    path = folder / file_name(index)
    if spec.vocabulary is not None:
        with replacing(path.with_suffix(".jsonl")) as file:
            file.write("".join(json.dumps(spec.show(torch.from_numpy(row))) + "\n" for row in x).encode())
    with replacing(path) as file:
        np.save(file, x.astype(smallest_type(spec.num_classes + 1)))  # a code that means no class is one beyond them


def prepare(folder: Path, plan: Plan, warn: Callable[[str], None]) -> None:
    """Make the folder, or raise a ValueError if it holds something else than this plan."""
    manifest = folder / MANIFEST
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; expected a folder to write samples to")
    if manifest.exists():
        old = read_manifest(manifest)
        changed = [name for name, value in plan.to_dict().items() if old["plan"].get(name) != value]
        if changed:
            raise ValueError(
                f"{folder} holds samples that were drawn otherwise (other {', '.join(changed)}); "
                "give the same command to continue, or choose another `out`"
            )
        for name in damaged_files(folder, old):
            (folder / file_name(int(Path(name).stem.rpartition("-")[2]))).unlink(missing_ok=True)
            warn(f"{folder / name} does not have the checksum that {MANIFEST} states; it is drawn again")
        return
    if folder.exists() and any(not path.name.startswith(".") for path in folder.iterdir()):
        raise ValueError(f"{folder} is not empty and holds no {MANIFEST}; choose another `out`")
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(manifest) as file:
        file.write(described(plan, []))


def described(plan: Plan, files: list[dict[str, Any]]) -> bytes:
    return (json.dumps({"unordinal": FORMAT, "plan": plan.to_dict(), "files": files}, indent=1) + "\n").encode()


def read_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = read_json(path)
        if not isinstance(manifest, dict) or manifest.get("unordinal") != FORMAT:
            raise ValueError(f"it is not of format {FORMAT}")
        entries = manifest["files"]
        if not isinstance(manifest["plan"], dict) or not all(isinstance(entry["sha256"], str) for entry in entries):
            raise ValueError("an entry is not of the expected type")
        if [entry["file"] for entry in entries] != [file_name(index) for index in range(len(entries))]:
            raise ValueError("its files are not those expected")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}; choose another `out`") from error
    return manifest


def damaged_files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Return the names of the files that differ from their checksums."""
    found = []
    for entry in manifest["files"]:
        texts = Path(entry["file"]).with_suffix(".jsonl").name
        for name, expected in ((entry["file"], entry["sha256"]), (texts, entry.get("text_sha256"))):
            if expected is not None and (folder / name).is_file() and checksum_of(folder / name) != expected:
                found.append(name)
    return found


def write_manifest(folder: Path, plan: Plan, spec: DataSpec) -> None:
    """Write the list of files, once all of them are there."""
    files = []
    for index in range(plan.num_files):
        path = folder / file_name(index)
        entry = {"index": index, "file": path.name, "num": plan.num_in(index), "sha256": checksum_of(path)}
        texts = {"text_sha256": checksum_of(path.with_suffix(".jsonl"))} if spec.vocabulary is not None else {}
        files.append({**entry, **texts})
    with replacing(folder / MANIFEST) as file:
        file.write(described(plan, files))
