"""Where a training step spends its time, and its share of the matmul peak: python benchmarks/step_profile.py

For each model and size: the time of a step, its share of this machine's float32 matmul peak in the same interleaved
run, and how the time is shared out over kinds of operations. The peak is that of products of the sizes that the network
has; the peak of large products is printed too.
"""

import json
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from arguments import given
from timing import interleaved, matmul, matmul_flops
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from training_throughput import KERNELS

from unordinal.config import RunConfig
from unordinal.data import load_data
from unordinal.overrides import with_settings
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop

KINDS = {  # parts of the names of operations
    "matrix products": ("mm", "linear", "matmul"),
    "attention": ("scaled_dot_product", "flash_attention"),
    "convolutions": ("conv", "mkldnn"),
    "normalisation": ("norm",),
    "softmax": ("softmax",),
    "copies": (
        "copy",
        "cat",
        "clone",
        "fill",
        "zero",
        "index",
        "gather",
        "scatter",
        "sort",
        "embedding",
        "constant_pad",
    ),
    "optimiser": ("_foreach", "_fused", "lerp"),
}


@dataclass(frozen=True)
class Args:
    models: tuple[str, ...] = ("arm", "absorbing", "block")
    """Recipes of texts; cityscapes/multinomial, say, is one of maps."""
    sizes: tuple[str, ...] = ("tiny", "small")
    """Their sizes."""
    compiled: bool = False
    """Also with torch.compile."""
    rounds: int = 5
    """Rounds of the timing, of which the median is taken."""
    out: Path | None = None
    """File of the figures."""


def loop_of(config: RunConfig, folder: Path) -> Loop:
    """Return a loop over made-up data."""
    rng = np.random.default_rng(0)
    if "cityscapes" in config.preset:
        maps = rng.integers(0, 8, (64, 32, 64))
        data = load_data({"train": maps, "val": maps[:16], "test": maps[:16]})
    else:
        data = load_data(rng.integers(0, 27, 100_000), num_classes=27)
    torch.manual_seed(0)
    model = config.model.build(data.spec)
    return Loop(model, data, config.train, config.optim, RunFolder(folder), torch.device("cpu"))


def kind_of(name: str) -> str:
    """Return the kind of an operation."""
    return next((kind for kind, parts in KINDS.items() if any(part in name for part in parts)), "elementwise and rest")


def shares_of(loop: Loop) -> dict[str, float]:
    """Return the share of the time of each kind of operation in a step."""
    with profile(activities=[ProfilerActivity.CPU]) as found:
        loop.train_step()
    times: Counter[str] = Counter()
    for event in found.key_averages():
        if event.key.startswith("aten::") or "mkldnn" in event.key:
            times[kind_of(event.key)] += event.self_cpu_time_total
    total = sum(times.values())
    return {kind: value / total for kind, value in times.most_common()}


def measured(name: str, size: str, args: Args) -> dict[str, Any]:
    """Return the figures of a model at a size."""
    config = configured(name, size)
    with tempfile.TemporaryDirectory() as folder:
        loop = loop_of(config, Path(folder) / "plain")
        with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter:
            loop.train_step()
        counts = counter.get_flop_counts()["Global"]
        is_map = "cityscapes" in name
        flops = sum(count for kernel, count in counts.items() if is_map or "convolution" not in str(kernel))
        contestants: dict[str, Any] = {"step": loop.train_step, "matmul": matmul()}
        if args.compiled:
            compiled = loop_of(with_settings(config, {"compile": True}), Path(folder) / "compiled")
            contestants["compiled"] = compiled.train_step
        seconds = interleaved(contestants, args.rounds)
        shares = shares_of(loop)
    peak = matmul_flops() / seconds["matmul"]
    found = {"model": name, "size": size, "seconds": seconds["step"], "gflop": flops / 1e9, "peak": peak / 1e9}
    found |= {"share_of_peak": flops / seconds["step"] / peak, "shares": shares}
    return found | ({"compiled_speed": seconds["step"] / seconds["compiled"]} if args.compiled else {})


def main(args: Args) -> int:
    rows = []
    for name in args.models:
        for size in args.sizes:
            row = measured(name, size, args)
            rows.append(row)
            faster = f", compiled {row['compiled_speed']:.2f} times as fast" if args.compiled else ""
            print(
                f"{name}, {size}: {row['seconds']:.3f} s and {row['gflop']:.1f} GFLOP a step, "
                f"{row['share_of_peak']:.0%} of a peak of {row['peak']:.0f} GFLOP/s{faster}"
            )
            print("   " + ", ".join(f"{kind} {share:.0%}" for kind, share in row["shares"].items()), flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(given(Args, __doc__)))
