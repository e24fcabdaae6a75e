"""The diffusion loss, forward and backward without the network: ours against the paper's pseudo-code.

Time is interleaved in one process; peak memory is that of a fresh process each, above what it held before the first
call.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch

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


def high_water_kilobytes() -> int:
    """Most memory this process ever held (Linux). getrusage would start from the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def peak_megabytes(name: str) -> float:
    """Growth of a fresh process while it computes the loss once."""
    result = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
    return float(result.stdout)


def main() -> int:
    if len(sys.argv) > 1:
        work = contestants()[sys.argv[1]]
        before = high_water_kilobytes()
        work()
        print((high_water_kilobytes() - before) / 1024)
        return 0
    seconds = interleaved(contestants(), rounds=15)
    memory = {name: peak_megabytes(name) for name in seconds}
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
