"""Turn a run into a model of this package: `python -m unordinal.pretrained.export RUN NAME` (for maintainers)."""

import hashlib
import json
import sys
from pathlib import Path

import safetensors.torch

from unordinal.config import to_plain
from unordinal.data.storage import replacing
from unordinal.pretrained import HERE
from unordinal.runs.folder import RunFolder


def export(run: Path, name: str, into: Path = HERE) -> str:
    """Write configuration and weights, in float16, of a run to a folder of that name; return their sha256."""
    config, spec = RunFolder(run).read()
    folder = RunFolder(into / name)
    folder.write_config(config, spec)
    described, data = json.loads(folder.config.read_text()), config.data.moved(lambda path: Path(path).name)
    described["run"]["data"], described["data"]["name"] = to_plain(data), data.name  # the file, without its folder
    folder.config.write_text(json.dumps(described, indent=2) + "\n")
    tensors = safetensors.torch.load_file(RunFolder(run).weights)
    halves = {key: value.half() if value.is_floating_point() else value for key, value in tensors.items()}
    with replacing(folder.weights) as file:
        file.write(safetensors.torch.save(halves, {"unordinal": f'{{"step": {RunFolder(run).published_step}}}'}))
    return hashlib.sha256(folder.weights.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write(export(Path(sys.argv[1]), sys.argv[2]) + "\n")
