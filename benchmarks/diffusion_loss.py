"""The losses of uniform noise, forward and backward without the network, in discrete steps and in continuous time.

In discrete steps ours runs against the paper's pseudo-code, in continuous time against the textbook formula, which
makes several tensors of the size of the logits.

Times are interleaved; peak memory is what torch's allocator holds above the inputs.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.profiler import profile

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from appendix_a import AppendixA
from timing import interleaved, verdict

from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise

BATCH, LENGTH, CLASSES, STEPS = 32, 320, 256, 4000


def contestants() -> dict[str, Callable[[], None]]:
    torch.manual_seed(0)
    schedule = cosine_schedule(STEPS)
    ours, continuous = UniformNoise(CLASSES, schedule), ContinuousUniformNoise(CLASSES)
    log_alpha = schedule.log_alpha(torch.arange(STEPS + 1))
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

    moment = t / STEPS

    def run_continuous() -> None:
        logits.grad = None
        continuous.loss(logits, x, z, moment).sum().backward()

    def run_textbook() -> None:
        logits.grad = None
        textbook(continuous, logits, x, z, moment).sum().backward()

    return {"ours": run_ours, "paper": run_paper, "continuous": run_continuous, "textbook": run_textbook}


def textbook(noise: ContinuousUniformNoise, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
    """Return the integrand of the bound in continuous time from tensors over all classes, in relative differences."""
    k, amount = noise.num_classes, noise.schedule.noise(t)
    alpha, floor = ((v.to(logits)).view(-1, 1) for v in (1 - amount, amount / k))
    r = torch.softmax(logits, dim=-1)
    onehot = torch.nn.functional.one_hot(x, k).to(r.dtype)
    p = alpha.unsqueeze(-1) * r + floor.unsqueeze(-1)
    d = alpha.unsqueeze(-1) * (onehot - r) / p  # (q - p) / p
    near_one = d.clamp(min=-1 + torch.finfo(d.dtype).eps)
    kl = (p * ((1 + near_one) * torch.log1p(near_one) - near_one)).sum(dim=-1)
    d_z, p_z = (v.gather(-1, z.unsqueeze(-1)).squeeze(-1) for v in (d, p))
    q_z = torch.where(x == z, alpha, torch.zeros_like(alpha)) + floor
    is_near = d_z.abs() < 0.5
    log_rho = torch.where(is_near, torch.log1p(torch.where(is_near, d_z, 0.0)), q_z.log() - p_z.log())
    slope = noise.schedule.slope(t).to(logits).view(-1, 1)
    return (slope / (k * alpha.clamp(min=1e-38) * q_z) * (kl + torch.expm1(log_rho) - log_rho)).sum(dim=1)


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
    logits_megabytes = BATCH * LENGTH * CLASSES * 4 / 2**20
    print(f"loss forward + backward, B={BATCH} L={LENGTH} K={CLASSES} T={STEPS}, {torch.get_num_threads()} threads")
    for name in seconds:
        print(f"  {name:<10} {seconds[name] * 1e3:7.1f} ms  {memory[name]:7.1f} MB")
    fast = verdict(
        "speed-up over the paper's pseudo-code", seconds["paper"] / seconds["ours"], 3, at_least=True, unit="x"
    )
    small = verdict("peak memory, share of the pseudo-code's", memory["ours"] / memory["paper"], 1 / 3, at_least=False)
    quick = verdict(
        "continuous time, speed-up over the textbook",
        seconds["textbook"] / seconds["continuous"],
        3,
        at_least=True,
        unit="x",
    )
    lean = verdict(
        "continuous time, peak memory in sizes of the logits",
        memory["continuous"] / logits_megabytes,
        3,
        at_least=False,
    )
    return 0 if fast and small and quick and lean else 1


if __name__ == "__main__":
    sys.exit(main())
