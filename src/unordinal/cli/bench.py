"""`unordinal bench sampling`: the paper's time table on this machine."""

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import tyro

from unordinal.cli.common import MachineArgs, check_seed, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.config import Size
from unordinal.console import print_json, progress, say
from unordinal.names import unknown

if TYPE_CHECKING:
    from unordinal.evaluate.timing import Timing

COMMAND = Command(
    "unordinal bench",
    "Measure how long one sample takes, with fresh weights. The presets take turns, so that noise on the machine hits "
    "all of them alike.",
    (
        "unordinal bench sampling --size small",
        "unordinal bench sampling --presets text8/arm text8/argmax-ar --lengths 256 --repeats 10 --json",
    ),
)

PRESETS = (
    "text8/arm",
    "text8/latent-af-af",
    "text8/latent-iaf-scf",
    "text8/argmax-ar",
    "text8/argmax-coupling",
    "text8/discrete-flow",
    "text8/multinomial",
)


@dataclass(frozen=True)
class BenchArgs:
    what: tyro.conf.Positional[str]
    """What to measure: sampling."""
    presets: tuple[str, ...] = PRESETS
    """Presets of text8 or enwik8; default those of the paper's time table."""
    size: Size = "paper"
    """Size of the networks."""
    lengths: tuple[int, ...] = (256,)
    """Symbols of a sample."""
    repeats: int = 10
    """Samples of each."""
    steps: int = 100
    """Diffusions are measured with all their steps and with this many."""
    seed: int = 0
    """Seed of weights and draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=lambda: MachineArgs(device="cpu"))
    json: bool = False
    """End with one JSON object on stdout."""


def main(argv: list[str]) -> int:
    args = parse(BenchArgs, argv, COMMAND)
    from unordinal.evaluate.timing import time_sampling

    if args.what != "sampling":
        raise unknown("benchmark", args.what, ("sampling",))
    for name, value in (
        ("--repeats", args.repeats),
        ("--steps", args.steps),
        *(("--lengths", n) for n in args.lengths),
    ):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    check_seed(args.seed)
    if chosen_device(args.machine).type != "cpu":
        raise ValueError("sampling is timed on the CPU; add --device cpu")
    timings, is_whole = time_sampling(
        list(args.presets),
        size=args.size,
        lengths=list(args.lengths),
        repeats=args.repeats,
        steps=args.steps,
        seed=args.seed,
        progress=progress,
    )
    if not is_whole:
        say(f"Interrupted; what was measured until then, {args.repeats} draws of each wanted:")
    if args.json:
        rows = [timing.to_dict() for timing in timings]
        print_json({"sampling": rows, "seed": args.seed, "interrupted": not is_whole})
    else:
        show(timings)
    return 0 if is_whole else 128 + signal.SIGINT


def show(timings: list["Timing"]) -> None:
    row = "{:<22} {:<14} {:>6} {:>12} {:>20} {:>5}  {}"
    print(row.format("preset", "", "length", "parameters", "seconds (median, sd)", "draws", "paper, 1080Ti"))
    for t in timings:
        spent = f"{t.median:.3f}" if t.deviation is None else f"{t.median:.3f} ± {t.deviation:.3f}"
        print(row.format(t.preset, t.variant, t.length, f"{t.parameters:,}", spent, t.repeats, t.paper or ""))
