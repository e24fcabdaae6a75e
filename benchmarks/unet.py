"""The U-Net diffusion at paper size: training against the matmul peak, and sampling in 100 of 4000 steps.

The official code trained 12.0 maps/s with a U-Net of this size, and took 199 s for one map in its 4000 steps, on a
machine with a matmul peak of 275 GFLOP/s; speeds are scaled by the peak measured here, in the same run.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from timing import interleaved, matmul, matmul_flops, verdict
from torch.utils.flop_counter import FlopCounterMode
from training_throughput import KERNELS

from unordinal.data import load_data
from unordinal.models.diffusion import Diffusion
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop

ROUNDS, STEPS, REFERENCE_PEAK = 5, 100, 275e9


def main() -> int:
    config = configured("cityscapes/multinomial", "paper")
    maps = np.random.default_rng(0).integers(0, 8, (64, 32, 64))
    data = load_data({"train": maps, "val": maps[:16], "test": maps[:16]})
    torch.manual_seed(0)
    model = config.model.build(data.spec)
    assert isinstance(model, Diffusion)
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(model, data, config.train, config.optim, RunFolder(Path(folder)), torch.device("cpu"))
        with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter:
            loop.train_step()
        flops = counter.get_total_flops() / config.train.batch_size  # of a map
        generator = torch.Generator().manual_seed(0)
        seconds = interleaved(
            {
                "step": loop.train_step,
                "matmul": matmul(),
                "sample": lambda: model.eval().sample(1, generator=generator, steps=STEPS),
            },
            ROUNDS,
        )
    peak = matmul_flops() / seconds["matmul"]
    speed = config.train.batch_size / seconds["step"]
    num_parameters = sum(p.numel() for p in model.parameters())
    print(
        f"U-Net of {num_parameters:,} parameters, batch {config.train.batch_size}: {flops / 1e9:.2f} GFLOP a map in "
        f"training, {speed:.2f} maps/s, matmul peak {peak / 1e9:.0f} GFLOP/s"
    )
    scaled = speed * REFERENCE_PEAK / peak
    checks = [
        verdict("share of the matmul peak", 100 * flops * speed / peak, 50, at_least=True, unit=" %"),
        verdict("maps/s at a peak of 275 GFLOP/s (official 12.0)", scaled, 13, at_least=True),
        verdict(
            f"one map in {STEPS} of {model.times.num} steps, at that peak (official, all 4000: 199 s)",
            seconds["sample"] * peak / REFERENCE_PEAK,
            4,
            at_least=False,
            unit=" s",
        ),
    ]
    print(f"  {seconds['sample']:.2f} s at this machine's peak")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
