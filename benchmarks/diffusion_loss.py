"""The diffusion loss, forward and backward without the network: ours against the paper's pseudo-code.

Times are interleaved; peak memory is what torch's allocator holds above the inputs.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import profile

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from appendix_a import AppendixA
from timing import interleaved, verdict

from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise

BATCH, LENGTH, CLASSES, STEPS = 32, 320, 256, 4000


def contestants() -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    log_alpha = cosine_schedule(STEPS)
    ours = UniformNoise(CLASSES, log_alpha)
    paper = AppendixA(CLASSES, log_alpha.diff().exp().numpy(), torch.float32)
    t = torch.randint(1, STEPS + 1, (BATCH,))
    x = torch.randint(CLASSES, (BATCH, LENGTH))
    z = ours.corrupt(x, t)
    logits = torch.randn(BATCH, LENGTH, CLASSES, requires_grad=True)

    def run_ours() -> None:
        logits.grad = None
        ours.loss(logits, x, z, t).sum().backward()

    def run_paper() -> None:
        logits.grad = None
        paper.compute_lt(logits, x, z, t - 1).sum().backward()

    return {"ours": run_ours, "paper": run_paper}


def peak_megabytes(work: Callable[[], None]) -> float:
    """Most memory that torch's allocator held above what it held before, over one call."""
    with profile(profile_memory=True) as recorded:
        work()
    assert recorded.profiler is not None
    events = [event for event in recorded.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak / 2**20


def main() -> int:
    work = contestants()
    seconds = interleaved(work, rounds=15)
    memory = {name: peak_megabytes(work[name]) for name in work}
    print(f"loss forward + backward, B={BATCH} L={LENGTH} K={CLASSES} T={STEPS}, {torch.get_num_threads()} threads")
    for name in seconds:
        print(f"  {name:<6} {seconds[name] * 1e3:7.1f} ms  {memory[name]:7.1f} MB")
    fast = verdict(
        "speed-up over the paper's pseudo-code", seconds["paper"] / seconds["ours"], 3, at_least=True, unit="x"
    )
    small = verdict("peak memory, share of the pseudo-code's", memory["ours"] / memory["paper"], 1 / 3, at_least=False)
    return 0 if fast and small else 1


if __name__ == "__main__":
    sys.exit(main())
