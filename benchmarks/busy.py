"""Training speed on a free and on a busy machine, with different bounds on how long OpenMP's threads spin.

Each contestant trains in a process of its own for some seconds, alone or next to two processes that keep a core busy
each. Contestants take turns, round after round; the table has the median of the steps of each, and the ratio to
OpenMP's default in the same rounds.
"""

import os
import statistics
import subprocess
import sys
from dataclasses import dataclass

from arguments import given

CONTESTANTS: dict[str, dict[str, str]] = {
    "default": {},
    "GOMP_SPINCOUNT=100000": {"GOMP_SPINCOUNT": "100000"},
    "GOMP_SPINCOUNT=10000": {"GOMP_SPINCOUNT": "10000"},
    "OMP_WAIT_POLICY=passive": {"OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
WORK = """
import sys, time, torch
from unordinal.data.spec import DataSpec
from unordinal.recipes import configured
config = configured("multinomial", sys.argv[1])
torch.manual_seed(0)
model = config.model.build(DataSpec("text", num_classes=27, event_shape=(256,)))
optimizer = torch.optim.Adam(model.parameters(), 1e-4)
x = torch.randint(27, (int(sys.argv[3]), 256))
def step():
    optimizer.zero_grad()
    model.training_loss(x).mean().backward()
    optimizer.step()
step()
began, steps = time.monotonic(), 0
while time.monotonic() - began < float(sys.argv[2]):
    step()
    steps += 1
print(steps / (time.monotonic() - began))
"""
BUSY = "while True: pass"


@dataclass(frozen=True)
class Args:
    size: str = "tiny"
    """Size of multinomial diffusion."""
    seconds: float = 15.0
    """Seconds of training of each contestant and round."""
    rounds: int = 3
    """Rounds."""
    examples: int = 8
    """Examples of 256 symbols per step."""
    contestants: tuple[str, ...] = ("default", "GOMP_SPINCOUNT=100000")
    """Contestants by name."""


def speed(environment: dict[str, str], args: Args, num_busy: int) -> float:
    """Return the steps per second of one contestant."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(num_busy)]
    try:
        command = [sys.executable, "-c", WORK, args.size, str(args.seconds), str(args.examples)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
        done = subprocess.run(command, env={**clean, **environment}, capture_output=True, text=True, check=True)
        return float(done.stdout)
    finally:
        for other in others:
            other.kill()
            other.wait()


def main(args: Args) -> None:
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(args.rounds):
        for num_busy in (0, 2):
            for name in args.contestants:
                value = speed(CONTESTANTS[name], args, num_busy)
                found.setdefault((name, num_busy), []).append(value)
                print(f"round {number + 1}, {num_busy} busy processes, {name}: {value:.2f} steps/s", flush=True)
    print(f"\n{args.size}, {args.examples} examples per step, median of {args.rounds} rounds of {args.seconds:g} s")
    for num_busy in (0, 2):
        for name in args.contestants:
            values, first = found[name, num_busy], found[args.contestants[0], num_busy]
            ratio = statistics.median(ours / theirs for ours, theirs in zip(values, first, strict=True))
            state = "free" if num_busy == 0 else "busy"
            print(
                f"  {state}  {name:<26} {statistics.median(values):7.2f} steps/s  {ratio:5.2f} of {args.contestants[0]}"
            )


if __name__ == "__main__":
    main(given(Args, __doc__))
