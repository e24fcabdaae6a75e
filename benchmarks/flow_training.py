"""Training flows at paper size, batch 16: whole batches against two parts, and peak memory.

The two ways take turns with the same model in one run, so that the machine's moods hit both alike. What the library
chooses is measured once more in a process of its own, for its peak memory. The official code took 3.0 GB
(autoregressive) and 4.4 GB (coupling) with the same batch.

    python benchmarks/flow_training.py text8/argmax-ar small 16 2 1    # another size and batch, in 2 parts and whole
"""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from timing import interleaved, verdict

from unordinal.data import load_data
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop

BATCH, ROUNDS = 16, 5
LIMITS = {"text8/argmax-ar": (1.5, 2.5), "text8/argmax-coupling": (1.0, 4.4)}  # times the two-part speed; GB


def loop_of(name: str, folder: str, size: str = "paper", batch_size: int = BATCH) -> Loop:
    config = configured(name, size)
    data = load_data(np.random.default_rng(0).integers(0, 27, 100_000), num_classes=27)
    torch.manual_seed(0)
    model, train = config.model.build(data.spec), replace(config.train, batch_size=batch_size)
    return Loop(model, data, train, config.optim, RunFolder(Path(folder)), torch.device("cpu"))


def memory(name: str) -> None:
    """Print this process's peak memory in GB after two steps; the second is the first with the whole optimiser."""
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(name, folder)
        loop.train_step()
        loop.train_step()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def step(loop: Loop, parts: int) -> Callable[[], object]:
    """A training step with its batch cut into so many parts."""

    def run() -> None:
        loop.num_parts = parts
        loop.train_step()

    return run


def table(name: str, size: str, batch_size: int, parts: list[int]) -> None:
    """Print characters per second for each number of parts."""
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(name, folder, size, batch_size)
        chosen = loop.num_parts
        seconds = interleaved({str(num): step(loop, num) for num in parts}, ROUNDS)
    for num, spent in seconds.items():
        mark = " (what the library chooses)" if int(num) == chosen else ""
        print(
            f"{name}, {size}, batch {batch_size}, parts {num}: {loop.symbols_per_step / spent:.0f} characters/s{mark}"
        )


def measure(name: str) -> list[bool]:
    fast, small = LIMITS[name]
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(name, folder)
        chosen = loop.num_parts
        seconds = interleaved({"chosen": step(loop, chosen), "two parts": step(loop, 2)}, ROUNDS)
    out = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True).stdout
    parameters = sum(p.numel() for p in loop.model.parameters())
    speeds = {way: loop.symbols_per_step / spent for way, spent in seconds.items()}
    print(f"{name}, paper size, {parameters:,} parameters, batch {BATCH}, {torch.get_num_threads()} threads")
    print(f"  in {chosen} part: {speeds['chosen']:.0f} characters/s; in two parts: {speeds['two parts']:.0f}")
    return [
        verdict("  speed over two parts", speeds["chosen"] / speeds["two parts"], fast, at_least=True, unit="x"),
        verdict("  peak memory", float(out), small, at_least=False, unit=" GB"),
    ]


def main() -> int:
    if len(sys.argv) > 4:
        table(sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(word) for word in sys.argv[4:]])
        return 0
    if len(sys.argv) > 1:
        memory(sys.argv[1])
        return 0
    held = [measure(name) for name in LIMITS]  # all of them, whatever the first one says
    return 0 if all(map(all, held)) else 1


if __name__ == "__main__":
    sys.exit(main())
