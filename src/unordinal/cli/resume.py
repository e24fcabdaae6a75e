"""`unordinal train --out RUN --resume`: go on with a run under its own settings."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro

from unordinal.cli.common import MachineArgs
from unordinal.cli.flags import Command, parse
from unordinal.console import progress, say

COMMAND = Command(
    "unordinal train",
    "Resume a run under its own settings; only its budget and its learning rate may change.",
    ("unordinal train --out runs/book --resume --minutes 20",),
)


@dataclass(frozen=True)
class ResumeArgs:
    out: Path
    """Folder of the run."""
    resume: bool = False
    """Go on with it."""
    minutes: float | None = None
    """A new budget in minutes, those already spent included."""
    steps: int | None = None
    """A new budget in steps, those already taken included."""
    lr: float | None = None
    """Another highest learning rate."""
    data: str | None = None
    """Where the data are now, if they have moved."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """End with one JSON object on stdout."""


def main(argv: list[str]) -> int:
    args = parse(ResumeArgs, argv, COMMAND)
    from unordinal.cli.train import train_and_tell
    from unordinal.config import OWN, RunConfig
    from unordinal.data import load_data
    from unordinal.data.spec import DataSpec
    from unordinal.parallel.group import current_group
    from unordinal.runs.folder import RunFolder
    from unordinal.train.checks import check_settings

    group = current_group()
    read = [part.to_dict() for part in RunFolder(args.out).read()] if group.is_first else None
    run, data_spec = group.told(read)
    config, spec = RunConfig.from_dict(run), DataSpec.from_dict(data_spec)
    if config.recipe == OWN:
        raise ValueError(
            f"the model of {args.out} was made in Python; go on with it there: fit(model, ..., resume=True)"
        )
    budget = config.train
    if args.minutes is not None or args.steps is not None:
        budget = replace(budget, minutes=args.minutes, steps=args.steps, epochs=None)
    budget = replace(budget, lr=config.train.lr if args.lr is None else args.lr)
    config = replace(config, train=budget, data=replace(config.data, name=args.data or config.data.name))
    check_settings(config.train, config.optim)
    with group.one_first():
        data = load_data(config.data, vocabulary=spec.vocabulary, progress=progress)
    for note in data.notes:
        say(f"Note: {note}.")
    return train_and_tell(config, data, args.out, args.machine, resume=True, as_json=args.json)


def is_resume(argv: list[str], known: set[str]) -> bool:
    """Whether a command goes on with a run without saying which model it has."""
    words = [word.partition("=")[0] for word in argv]
    return "--resume" in words and "--out" in words and not known & set(argv)
