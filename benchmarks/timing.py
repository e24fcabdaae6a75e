"""What the benchmarks share: interleaved medians, and this machine's matmul peak in the same run."""

import statistics
import time
from collections.abc import Callable, Mapping

import torch

PEAK_SIZE = 2048


def interleaved(contestants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each contestant, one round of all after another, after one round that does not count.

    Before each timed call there is one that does not count: it finds the memory that the contestant before it freed.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for current in range(rounds + 1):
        for name, work in contestants.items():
            work()
            began = time.perf_counter()
            work()
            if current:
                seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def matmul() -> Callable[[], object]:
    """A float32 product of two large matrices; `matmul_flops` over its time is the peak."""
    a, b = (torch.randn(PEAK_SIZE, PEAK_SIZE) for _ in range(2))
    return lambda: a @ b


def matmul_flops() -> int:
    return 2 * PEAK_SIZE**3


def verdict(name: str, value: float, bound: float, *, at_least: bool, unit: str = "") -> bool:
    """Print a figure beside what is asked of it; whether it holds."""
    holds = value >= bound if at_least else value <= bound
    sign = "at least" if at_least else "at most"
    print(f"{name}: {value:.3g}{unit} (wanted {sign} {bound:g}{unit}) {'ok' if holds else 'MISSED'}")
    return holds
