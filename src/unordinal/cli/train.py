"""`unordinal train PRESET`."""

import itertools
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import tyro

from unordinal.cli.common import MachineArgs, chosen_device, peak_memory_megabytes, text_of
from unordinal.cli.flags import Command, parse
from unordinal.cli.together import is_restarted
from unordinal.config import Alphabet, ModelSettings, OptimConfig, RunConfig, Size, TrainConfig, differences
from unordinal.console import TrainingReporter, print_json, progress, say

if TYPE_CHECKING:
    from unordinal.data.splits import Data
    from unordinal.model import CategoricalModel

SUMMARY = """Train a model and leave a run folder. Ctrl-C saves; the same command with --resume continues.

Options that are not given have the defaults of the model and its size. {name} at size {size} trains for {budget}."""
EXAMPLES = (
    "unordinal train arm --data book.txt --minutes 5",
    "unordinal train arm --data genes.fasta",
    "unordinal train multinomial --data folder_of_pngs/",
    "unordinal train text8/argmax-ar --data docs --surjection gumbel-threshold --base 3",
)
FIRST = ("data", "minutes", "steps", "size", "out", "resume", "batch_size", "lr", "seed", "json")

ADVICE = "the same command with --resume goes on"


M = TypeVar("M", bound=ModelSettings)


@dataclass(frozen=True)
class TrainArgs(Generic[M]):
    preset: tyro.conf.Positional[str]
    """A model (arm, multinomial, ...), or an experiment of the paper (text8/arm); `unordinal presets` lists them."""
    size: Size
    """paper is as published; tiny is useful in two minutes on two cores, small in an hour."""
    data: str
    """A file or folder of your own, read as what it is, or docs, text8, streets ...; `unordinal data` lists them."""
    data_split: str | None
    """TRAIN,VAL,TEST as fractions or counts; default the data set's own, or 0.9,0.05,0.05."""
    alphabet: Alphabet | None
    """How text becomes classes: a-z and space, the file's own characters, or bytes."""
    length: int | None
    """Symbols per sequence, where the data are one long text."""
    num_classes: int | None
    """Classes of an array or of maps; default the largest + 1."""
    letters: str | None
    """What the classes of an array, or the letters of a FASTA file, are called, in order: ACGT, say."""
    colours: Path | None
    """Maps in colour: a file with one class a line, a name and its colour: `road #804080` or `road 128 64 128`."""
    height: int | None
    """Rows of a map, for streets and cityscapes; default 32."""
    width: int | None
    """Columns of a map, likewise; default 64."""
    flips: bool
    """Mirror training maps left to right at random."""
    net: str | None
    """Another network where the model has a choice: lstm or transformer. Its own settings are under --model."""
    train: Annotated[TrainConfig, tyro.conf.arg(name="")]
    model: M
    optim: OptimConfig
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")]
    out: Path | None = None
    """Folder of the run; default a new one under runs/."""
    resume: bool = False
    """Continue the run in --out, or the newest run with the same settings but for its budget."""
    json: bool = False
    """End with one JSON object on stdout."""


def parsed(argv: list[str]) -> tuple[RunConfig, TrainArgs]:
    """PRESET, --size, --data and --net are read first, since they choose the defaults of everything else."""
    from unordinal.config import with_settings
    from unordinal.data import shape_of
    from unordinal.recipes import RECIPES, configured, experiments

    words = [word for pair in (w.split("=", 1) for w in argv) for word in pair]
    known = {**RECIPES, **experiments()}
    wants_help = bool({"-h", "--help", "--help-all"} & set(argv))
    first = next((word for word in words if word in known), words[0] if words else "")
    if wants_help and first not in known:
        first = "arm"
    elif not first or first.startswith("-"):
        raise ValueError("which model? unordinal train MODEL --data WHAT; `unordinal presets` lists the models")
    name, given = first, dict(itertools.pairwise(words))
    size = given.get("--size", "tiny")
    if name in RECIPES and "--data" not in given and not wants_help:
        wrong = next((w for w in words if w.startswith("--") and get_close_matches(w, ["--data"], cutoff=0.75)), None)
        if wrong is not None:
            raise ValueError(f"unknown option {wrong!r}; did you mean --data?")
        raise ValueError(f"which data? unordinal train {name} --data WHAT (`unordinal data` lists what there is)")
    if name not in RECIPES:
        base = configured(name, size)
    else:  # a model, unlike an experiment, takes its network from the shape of the data
        base = configured(name, size, shape_of(given["--data"]) if "--data" in given else RECIPES[name].takes[0])
    if "--net" in given:
        base = with_settings(base, {"net": given["--net"]})
    defaults = TrainArgs(
        preset=name,
        net=given.get("--net"),
        size=base.size,
        data=base.data.name,
        data_split=base.data.split,
        alphabet=base.data.alphabet,
        length=base.data.length,
        num_classes=base.data.num_classes,
        letters=base.data.letters,
        colours=None,
        height=base.data.map_height,
        width=base.data.map_width,
        flips=base.data.flips,
        train=replace(base.train, steps=None, minutes=None),
        model=base.model,
        optim=base.optim,
        machine=MachineArgs(),
    )
    kind: Any = TrainArgs[type(base.model)]  # type: ignore[misc]
    summary = SUMMARY.format(name=name, size=size, budget=budget_text(base.train))
    command = Command("unordinal train", summary, EXAMPLES, FIRST)
    args: TrainArgs[ModelSettings] = parse(kind, argv, command, defaults)
    budget = args.train
    if budget.epochs != base.train.epochs and budget.steps is None and budget.minutes is None:
        pass  # epochs were asked for
    elif budget.steps is None and budget.minutes is None:
        budget = replace(budget, steps=base.train.steps, minutes=base.train.minutes)
    elif budget.steps is not None and budget.minutes is not None:
        raise ValueError(f"give --steps or --minutes, not both (got {budget.steps} and {budget.minutes:g})")
    else:
        budget = replace(budget, epochs=None)
    data = replace(
        base.data,
        name=args.data,
        split=args.data_split,
        alphabet=args.alphabet,
        length=args.length,
        num_classes=args.num_classes,
        letters=args.letters,
        colours=None if args.colours is None else text_of(args.colours),
        map_height=args.height,
        map_width=args.width,
        flips=args.flips,
    )
    return replace(base, data=data, train=budget, model=args.model, optim=args.optim), args


def budget_text(config: TrainConfig) -> str:
    if config.minutes is not None:
        return f"{config.minutes:g} minutes"
    return f"{config.steps} steps" if config.steps is not None else f"{config.epochs:g} epochs"


def main(argv: list[str]) -> int:
    from unordinal.cli import resume
    from unordinal.recipes import RECIPES, experiments

    if resume.is_resume(argv, {*RECIPES, *experiments()}):
        return resume.main(argv)
    config, args = parsed(argv)
    from unordinal.data import check_shape, load_data, resolve_name
    from unordinal.parallel.group import current_group
    from unordinal.recipes import shape_wanted
    from unordinal.runs.folder import RunFolder
    from unordinal.runs.lock import was_this_job
    from unordinal.train.checks import check_settings
    from unordinal.train.start import check_same_run

    check_settings(config.train, config.optim)  # complain before any work
    wanted = shape_wanted(config.preset)
    if wanted is not None:
        check_shape(config.data.name, wants_maps=wanted == "maps", who=config.preset)
    config = replace(config, data=replace(config.data, name=resolve_name(config.data.name)))
    group, resumes, path = current_group(), args.resume, folder_of(config, args.out, resume=args.resume)
    if is_restarted() and was_this_job(again := folder_of(config, args.out, resume=True)):
        resumes, path = True, again
    resumes, chosen = group.told([resumes, str(path)])
    path = Path(chosen)
    if group.is_first and resumes and RunFolder(path).is_run:
        check_same_run(RunFolder(path).read()[0], config, RunFolder(path))
    with group.one_first():
        data = load_data(config.data, progress=progress)
    data.require("train", "val")
    for note in data.notes:
        say(f"Note: {note}.")
    return train_and_tell(config, data, path, args.machine, resume=resumes, as_json=args.json)


def train_and_tell(
    config: RunConfig,
    data: "Data",
    path: Path,
    machine: MachineArgs,
    *,
    resume: bool,
    as_json: bool,
    advice: str = ADVICE,
) -> int:
    """Train and tell how it ended; the exit code."""
    from unordinal.runs.folder import RunFolder
    from unordinal.train.start import train_run

    folder, device, unit = RunFolder(path), chosen_device(machine), data.spec.unit
    if resume and not folder.is_run:
        say(f"Nothing to resume at {path}: starting.")
    facts: dict[str, Any] = {}

    def told(model: "CategoricalModel") -> None:
        facts["parameters"] = sum(p.numel() for p in model.parameters())
        say(
            f"{config.preset} ({config.size}, {facts['parameters']:,} parameters) on {data.spec.name}: "
            f"{data.spec.num_classes} classes, {data.train.symbols.size:,} training symbols."
        )
        own = config.model.facts(model)
        facts.update(own)
        if own:
            text = ", ".join(f"{name.replace('_', ' ')} {plain_number(value)}" for name, value in own.items())
            say(f"{text[0].upper()}{text[1:]}.")
        if facts["parameters"] > data.train.symbols.size:
            symbols = data.train.symbols.size
            say(f"Note: {facts['parameters']:,} weights for {symbols:,} symbols: it may learn them by heart.")
        say(f"Run folder: {path}")

    reporter = TrainingReporter(unit, told)
    try:
        result = train_run(config, data, folder, resume=resume, device=device, reporter=reporter)
    finally:
        reporter.close()
    if result.was_finished:
        spent = "" if result.seconds < 60 else f" and {result.seconds / 60:.0f} minutes"
        say(f"{path} is finished; a budget counts from its start, of which {result.step} steps{spent} are spent.")
    elif result.interrupted_by:
        say(f"{result.interrupted_by.name}: saved at step {result.step}; {advice}.")
    else:
        say(f"Done: {result.step} steps, {result.seconds:.0f} s, {result.symbols_per_second:,.0f} symbols/s.")
        found = f"validation {result.best_bits:.4f} {unit}, the mean of all its draws"
        say(f"Published the weights of step {result.best_step}: {found}.")
        say(f"Score them with: unordinal evaluate {path}")
    if as_json:
        best = result.best_bits if result.best_step else None
        values = {"run": str(path), "steps": result.step, "seconds": round(result.seconds, 3), **facts}
        values |= {"symbols_per_second": round(result.symbols_per_second, 1), "val_bits_per_dim": best, "unit": unit}
        values |= {"peak_memory_mb": peak_memory_megabytes()}
        print_json({**values, "interrupted": result.interrupted_by.name if result.interrupted_by else None})
    return 128 + result.interrupted_by if result.interrupted_by else 0


def plain_number(value: Any) -> str:
    """A count with its thousands apart; anything else as it is."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def folder_of(config: RunConfig, out: Path | None, *, resume: bool) -> Path:
    """--out; else the newest run of these settings when resuming; else the first free name under runs/."""
    if out is not None:
        return out
    from unordinal.runs.folder import RunFolder
    from unordinal.train.start import CHANGEABLE

    base = Path("runs") / f"{config.preset.replace('/', '-')}-{config.size}"
    if resume:
        candidates = [path for path in base.parent.glob(f"{base.name}*") if (path / "config.json").is_file()]
        for path in sorted(candidates, key=lambda path: (path / "config.json").stat().st_mtime, reverse=True):
            try:
                if not differences(RunFolder(path).read()[0], config, ignore=CHANGEABLE):
                    return path
            except ValueError:  # a damaged neighbour is not the run that is looked for
                continue
    return free_name(base)


def free_name(base: Path) -> Path:
    """`base`, or with the first number behind it that is free."""
    number = 1
    while (path := base if number == 1 else base.with_name(f"{base.name}-{number}")).exists():
        number += 1
    return path
