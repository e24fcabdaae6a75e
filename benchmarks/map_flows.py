"""Flows over maps: sampling 16 maps at paper size in one pass, and the memory of long importance-weighted bounds.

The bound is taken with 10 and with 1000 draws, each in a process of its own; the ratio of their peaks is what counts.
"""

import resource
import subprocess
import sys

import numpy as np
import torch
from timing import interleaved, matmul, matmul_flops, verdict

from unordinal.data.spec import DataSpec
from unordinal.data.splits import Split
from unordinal.evaluate.likelihood import Evaluate, score_split
from unordinal.recipes import configured

NUM_MAPS, ROUNDS = 16, 3
SPEC = DataSpec("random maps", 8, (32, 64))


def bound_memory(k: int) -> None:
    """Print this process's peak memory in MB after an IWBO-k of two maps."""
    torch.manual_seed(0)
    model = configured("cityscapes/argmax-softplus", "tiny").model.build(SPEC)
    maps = np.random.default_rng(0).integers(0, 8, (2, 32, 64)).astype(np.uint8)
    score_split(model, Split(maps), Evaluate(bound="iwbo", k=k))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)


def measured(k: int) -> float:
    out = subprocess.run([sys.executable, __file__, str(k)], check=True, capture_output=True, text=True).stdout
    return float(out)


def main() -> int:
    if len(sys.argv) > 1:
        bound_memory(int(sys.argv[1]))
        return 0
    config = configured("cityscapes/argmax-softplus", "paper")
    torch.manual_seed(0)
    model = config.model.build(SPEC).eval()
    model.hooks.initialise(torch.randint(8, (1, 32, 64)))
    seconds = interleaved({"sample": lambda: model.sample(NUM_MAPS), "matmul": matmul()}, ROUNDS)
    print(
        f"{NUM_MAPS} maps at paper size, {sum(p.numel() for p in model.parameters()):,} parameters, in one pass: "
        f"{seconds['sample']:.2f} s (matmul peak {matmul_flops() / seconds['matmul'] / 1e9:.0f} GFLOP/s)"
    )
    few, many = (measured(k) for k in (10, 1000))
    print(f"IWBO of two maps, tiny: {few:.0f} MB with 10 draws, {many:.0f} MB with 1000")
    return 0 if verdict("peak memory of IWBO-1000 over IWBO-10", many / few, 1.3, at_least=False) else 1


if __name__ == "__main__":
    sys.exit(main())
