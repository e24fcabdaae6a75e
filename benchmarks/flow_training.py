"""Training flows at paper size, batch 16: characters per second and peak memory beside the official code's.

The official code reached 484 (autoregressive) and 350 (coupling) characters/s in 3.0 and 4.4 GB on a machine with a
matmul peak of 275 GFLOP/s; its speed is scaled by the peak measured here, in the same run. Each flow is trained in a
process of its own, so that its peak memory is its own.
"""

import resource
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from timing import interleaved, matmul, matmul_flops, verdict

from unordinal.data import data_from_array
from unordinal.recipes import configured
from unordinal.train.loop import Loop
from unordinal.train.run import RunFolder

BATCH, ROUNDS, OFFICIAL_PEAK = 16, 3, 275e9
OFFICIAL = {"text8/argmax-ar": (484, 3.0), "text8/argmax-coupling": (350, 4.4)}  # characters/s, GB


def measure(name: str) -> int:
    config = configured(name, "paper")
    data = data_from_array(np.random.default_rng(0).integers(0, 27, 100_000), config.data)
    torch.manual_seed(0)
    model = config.model.build(data.spec)
    train = replace(config.train, batch_size=BATCH)
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(model, data, train, config.optim, RunFolder(Path(folder)), torch.device("cpu"))
        loop.train_step()  # the second step is the first that has the optimiser's whole state
        loop.train_step()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # GB
        seconds = interleaved({"step": loop.train_step, "matmul": matmul()}, ROUNDS)
    peak = matmul_flops() / seconds["matmul"]
    speed = loop.symbols_per_step / seconds["step"]
    official_speed, official_memory = OFFICIAL[name]
    scaled = official_speed * peak / OFFICIAL_PEAK
    print(
        f"{name}, paper size, {sum(p.numel() for p in model.parameters()):,} parameters, batch {BATCH} in "
        f"{loop.num_parts} parts: {seconds['step']:.2f} s a step, {speed:.0f} characters/s, {memory:.2f} GB"
    )
    print(f"  official {official_speed} characters/s at 275 GFLOP/s, {scaled:.0f} at this run's {peak / 1e9:.0f}")
    fast = verdict("  speed, share of the official, scaled", speed / scaled, 1, at_least=True)
    small = verdict("  peak memory, share of the official", memory / official_memory, 0.7, at_least=False)
    return 0 if fast and small else 1


def main() -> int:
    if len(sys.argv) > 1:
        return measure(sys.argv[1])
    codes = [subprocess.run([sys.executable, __file__, name], check=False).returncode for name in OFFICIAL]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
