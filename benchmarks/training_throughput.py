"""Training at size small: the share of this machine's float32 matmul peak, both measured in one interleaved run.

Operations are counted by torch.utils.flop_counter over a whole training step. It does not know the CPU's attention
kernels, so they are given its own formulas for attention; the depthwise convolutions, which it overcounts, are left
out.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from timing import interleaved, matmul, matmul_flops, verdict
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count

from unordinal.data import load_data
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop

ROUNDS = 7


def attention(query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return sdpa_flop_count(query, key, value)


def attention_backward(grad: Any, query: Any, key: Any, value: Any, *_: Any, **__: Any) -> int:
    return sdpa_backward_flop_count(grad, query, key, value)


KERNELS = {
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward,
}


def main() -> int:
    config = configured("text8/multinomial", "small")
    symbols = np.random.default_rng(0).integers(0, 27, 100_000)
    data = load_data(symbols, num_classes=27)
    torch.manual_seed(0)
    model = config.model.build(data.spec)
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(model, data, config.train, config.optim, RunFolder(Path(folder)), torch.device("cpu"))
        with FlopCounterMode(display=False, custom_mapping=KERNELS) as counter:
            loop.train_step()
        counts = counter.get_flop_counts()["Global"]
        flops = sum(count for kernel, count in counts.items() if "convolution" not in str(kernel))
        seconds = interleaved({"step": loop.train_step, "matmul": matmul()}, ROUNDS)
    peak, reached = matmul_flops() / seconds["matmul"], flops / seconds["step"]
    num_parameters = sum(p.numel() for p in model.parameters())
    print(
        f"training step, small, {num_parameters:,} parameters, batch {config.train.batch_size}: {seconds['step']:.2f} s"
    )
    print(f"  {flops / 1e9:.1f} GFLOP a step, {reached / 1e9:.0f} GFLOP/s of a matmul peak of {peak / 1e9:.0f} GFLOP/s")
    print(f"  {loop.symbols_per_step / seconds['step']:,.0f} symbols/s")
    return 0 if verdict("share of the matmul peak", 100 * reached / peak, 55, at_least=True, unit=" %") else 1


if __name__ == "__main__":
    sys.exit(main())
