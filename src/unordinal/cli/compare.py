"""`unordinal compare RUN RUN`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro

from unordinal.cli.common import MachineArgs, check_seed, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.console import print_json, progress
from unordinal.names import counted

COMMAND = Command(
    "unordinal compare",
    "Compare two runs on the same examples: the difference of their bits, with the standard error of the difference.",
    (
        "unordinal compare runs/arm runs/multinomial",
        "unordinal compare runs/small runs/large --data other.txt --repeats 16 --json",
    ),
)


@dataclass(frozen=True)
class CompareArgs:
    first: tyro.conf.Positional[Path]
    """Folder of a run; its data are scored."""
    second: tyro.conf.Positional[Path]
    """Folder of another run, of data with the same classes."""
    split: Literal["train", "val", "test"] | None = None
    """Which part of the data; default test, or all of --data."""
    data: str | None = None
    """Other data than the first run's own."""
    repeats: int = 4
    """Draws of a bound per example; exact likelihoods need none."""
    num_examples: int | None = None
    """Score only the first N examples; default the whole split."""
    seed: int = 0
    """Seed of the draws, the same for both."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout."""


def main(argv: list[str]) -> int:
    args = parse(CompareArgs, argv, COMMAND)
    from unordinal.api import check_alike, data_of, load
    from unordinal.evaluate.compare import compare

    check_seed(args.seed)
    device = chosen_device(args.machine)
    first, second = (load(path, device=device) for path in (args.first, args.second))
    data = data_of(first, args.data, progress, is_whole=args.split is None)
    check_alike(second, data, data.spec.name)
    split = args.split or "test"
    result = compare(
        first.model,
        second.model,
        data.split(split),
        split_name=split,
        repeats=args.repeats,
        num_examples=args.num_examples,
        seed=args.seed,
        unit=first.spec.unit,
        progress=progress,
    )
    for path, bits, kind in zip((args.first, args.second), (result.first, result.second), result.kinds, strict=True):
        print(f"{path}: {bits:.4f} {result.unit} ({kind})")
    error = "" if result.standard_error is None else f" ± {result.standard_error:.4f}"
    print(
        f"second - first: {result.difference:+.4f}{error} over {counted(result.num_examples, 'example')} of "
        f"{result.split}; {result.verdict}"
    )
    if args.json:
        print_json({**result.to_dict(), "runs": [str(args.first), str(args.second)], "seed": args.seed})
    return 0
