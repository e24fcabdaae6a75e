"""`unordinal train --out RUN --resume`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from unordinal.cli.parsing import parse
from unordinal.cli.train import LoggedArgs, train_and_tell
from unordinal.cli.words import Words
from unordinal.config import OWN, RunConfig
from unordinal.console import progress, say
from unordinal.settings import Flag


@dataclass(frozen=True)
class ResumeArgs(LoggedArgs):
    """Resume a run under its own settings; only its budget and its learning rate may change.

    Examples:
        unordinal train --out runs/book --resume --minutes 20
    """

    out: Path = Path()
    """Folder of the run."""
    resume: bool = False
    """Continue it."""
    minutes: Annotated[float | None, Flag(metavar="MINUTES")] = None
    """A new budget in minutes, counted from the start of the run."""
    steps: Annotated[int | None, Flag(metavar="STEPS")] = None
    """A new budget in steps, counted from the start of the run."""
    lr: float | None = None
    """Another highest learning rate."""
    data: Annotated[str | None, Flag(metavar="DATA")] = None
    """Where the data are now, if they have moved."""


def resume_run(words: Words) -> int:
    """Continue the run in --out under its own settings."""
    from unordinal.data import source_of
    from unordinal.data.spec import DataSpec
    from unordinal.overrides import with_settings
    from unordinal.parallel.group import current_group
    from unordinal.runs.folder import RunFolder

    args: ResumeArgs = parse(words, ResumeArgs)
    group = current_group()
    found = [part.to_dict() for part in RunFolder(args.out).read()] if group.is_first else None
    run, described = group.broadcast(found)
    config, spec = RunConfig.from_dict(run), DataSpec.from_dict(described)
    if config.recipe == OWN:
        raise ValueError(f"the model of {args.out} was made in Python; continue it there: fit(model, ..., resume=True)")
    changes = {name: getattr(args, name) for name in ("minutes", "steps", "lr") if getattr(args, name) is not None}
    config = with_settings(config, changes)
    if args.data is not None:
        moved = source_of(args.data)
        config = replace(config, data=moved.adapted(**{k: v for k, v in vars(config.data).items() if k != "path"}))
    with group.one_first():
        data = config.data.load(vocabulary=spec.vocabulary, progress=progress)
    for note in data.notes:
        say(f"Note: {note}.")
    return train_and_tell(config, data, args.out, args, resume=True, tensorboard=args.tensorboard)
