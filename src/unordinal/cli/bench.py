"""`unordinal bench sampling`: the paper's time table on this machine."""

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from unordinal.cli.common import MachineArgs
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.config import Size
from unordinal.console import print_json, progress, say
from unordinal.experiments import SAMPLING_TIME
from unordinal.names import unknown
from unordinal.settings import Checked, Flag, Range, Seed

if TYPE_CHECKING:
    from unordinal.evaluate.timing import Timing

PRESETS = tuple(dict.fromkeys(row.experiment for row in SAMPLING_TIME.rows))


@dataclass(frozen=True)
class BenchArgs(MachineArgs, Checked):
    """Measure how long one sample takes, with fresh weights. The presets take turns, so that noise on the machine hits
    all of them alike.

    Examples:
        unordinal bench sampling --size small
        unordinal bench sampling --presets text8/arm text8/argmax-ar --lengths 256 --repeats 10 --json
    """

    what: Annotated[str, POSITIONAL, Flag(metavar="WHAT")]
    """What to measure: sampling."""
    presets: Annotated[tuple[str, ...], Flag(metavar="MODEL")] = PRESETS
    """Presets of text8 or enwik8; default those of the paper's time table."""
    size: Size = "paper"
    """Size of the networks."""
    lengths: Annotated[tuple[int, ...], Range(1)] = (256,)
    """Symbols of a sample."""
    repeats: Annotated[int, Range(1)] = 10
    """Samples of each."""
    steps: Annotated[int, Range(1)] = 100
    """Diffusions are measured with all their steps and with this many."""
    seed: Seed = 0
    """Seed of weights and draws."""


def main(words: Words) -> int:
    args = parse(words, BenchArgs)
    from unordinal.evaluate.timing import time_sampling

    if args.what != "sampling":
        raise unknown("benchmark", args.what, ("sampling",))
    if args.device != "auto" and args.chosen_device().type != "cpu":
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
        rows = [vars(timing) for timing in timings]
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
