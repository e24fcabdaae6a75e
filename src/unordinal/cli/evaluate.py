"""`unordinal evaluate RUN`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from unordinal.cli.common import MachineArgs, check_output, check_seed, chosen_device, unit_of
from unordinal.cli.console import print_json, progress, say

EXAMPLE = """Score a run: bits per dimension of a split, with its standard error.

Example: unordinal evaluate runs/text8-multinomial-tiny --split test --repeats 4 --json"""


@dataclass(frozen=True)
class EvaluateArgs:
    run: tyro.conf.Positional[Path]
    """Folder that `unordinal train` made."""
    split: Literal["train", "val", "test"] = "test"
    """Which part of the data."""
    data: str | None = None
    """Other data than the run's own, encoded with its vocabulary."""
    data_split: str | None = None
    """Split of --data; default the data set's own, or 0.9,0.05,0.05."""
    times: Literal["stratified", "all"] = "stratified"
    """Diffusion: spread times over the examples, or compute every one of the T terms."""
    repeats: int = 1
    """Times (or, with --times all, draws of x_t) per example."""
    num_examples: int | None = None
    """Score only the first N examples; default the whole split."""
    batch_size: int = 32
    """Examples per network call."""
    per_example: Path | None = None
    """Write each example's bits per dimension to this CSV file."""
    seed: int = 0
    """Seed of the draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout."""


def main(argv: list[str]) -> int:
    args = tyro.cli(
        EvaluateArgs, args=argv, prog="unordinal evaluate", description=EXAMPLE, config=(tyro.conf.FlagCreatePairsOff,)
    )
    from unordinal.api import data_of, score
    from unordinal.data.storage import replacing
    from unordinal.train.run import load

    if args.batch_size < 1:
        raise ValueError(f"--batch-size must be at least 1, got {args.batch_size}")
    if args.data_split is not None and args.data is None:
        raise ValueError("--data-split goes with --data; a run's own data keep the split they were trained with")
    check_output(args.per_example)
    check_seed(args.seed)
    run = load(args.run, device=chosen_device(args.machine))
    data = data_of(run, args.data, progress, split=args.data_split)
    for note in data.notes:
        say(f"Note: {note}.")
    result = score(
        run,
        data,
        split=args.split,
        times=args.times,
        repeats=args.repeats,
        num_examples=args.num_examples,
        batch_size=args.batch_size,
        seed=args.seed,
        progress=progress,
    )
    unit = unit_of(run.spec)
    print(str(result).replace("bits per dimension", unit))
    unscored = data.split(args.split).num_unscored
    if unscored and args.num_examples is None:
        say(f"Note: the last {unscored} symbols of the split do not fill a sequence and are not scored.")
    if args.per_example:
        rows = "".join(f"{i},{bits:.6f}\n" for i, bits in enumerate(result.per_example))
        with replacing(args.per_example) as file:
            file.write(f"example,bits_per_dim\n{rows}".encode())
    if args.json:
        print_json({**result.to_dict(), "unit": unit, "run": str(args.run), "data": data.spec.name, "seed": args.seed})
    return 0
