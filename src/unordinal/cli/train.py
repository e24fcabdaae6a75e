"""`unordinal train MODEL`."""

from contextlib import closing
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from unordinal.cli.common import MachineArgs, peak_memory_megabytes
from unordinal.cli.parsing import POSITIONAL, Command, Option, given_of, options_of, read
from unordinal.cli.together import is_restarted
from unordinal.cli.words import HELP, Words
from unordinal.config import BUDGET, RunConfig, Size, TrainConfig, differences
from unordinal.console import TrainingReporter, print_json, progress, say
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.data.splits import Data
    from unordinal.model import CategoricalModel
    from unordinal.runs.warm import WarmStart
    from unordinal.train.log import Reporter
    from unordinal.train.running import Outcome

# Settings that follow from the data unless they are given.
SUITED = (
    *("train.batch_size", "train.validate_examples", "train.patience"),
    *("model.net.width", "model.net.num_blocks", "model.net.conv", "model.net.dropout"),
)
ADVICE = "the same command with --resume continues"


@dataclass(frozen=True, kw_only=True)
class LoggedArgs(MachineArgs):
    """A base of the arguments of commands that train."""

    tensorboard: bool = False
    """Also log losses and scores for TensorBoard, in the folder tensorboard of the run."""


@dataclass(frozen=True)
class TrainArgs(LoggedArgs):
    """Train a model and leave a run folder. Ctrl-C saves; the same command with --resume continues.

    Options that are not given have the defaults of the model and its size. NAME at size SIZE trains for BUDGET.

    Examples:
        unordinal train arm --data book.txt --minutes 5
        unordinal train arm --data names.txt --lines
        unordinal train arm --data book.txt --init pretrained:text8-arm
        unordinal train arm --data genes.fasta
        unordinal train multinomial --data folder_of_pngs/
        unordinal train text8/argmax-ar --data docs --surjection gumbel-threshold --base 3
    """

    FIRST: ClassVar = (
        *("data", "lines", "column", "label_column", "label_file", "alphabet", "minutes", "steps", "size", "init"),
        *("out", "resume", "batch_size", "lr", "threads", "json"),
    )
    preset: Annotated[str | None, POSITIONAL, Flag(metavar="MODEL")] = None
    """A model (arm, multinomial, ...), or an experiment of the paper (text8/arm); `unordinal presets` lists them."""
    data: Annotated[str | None, Flag(metavar="DATA")] = None
    """A file or folder of your own, whose format is recognised, or docs, text8, streets ...; `unordinal data` lists
    them. An experiment of the paper has its own."""
    lines: bool = False
    """Take every line of a text file as an example of its own length. For a table, --column COLUMN takes every text of
    this column."""
    size: Size = "tiny"
    """Size of the model: paper is as published; tiny is useful in two minutes on two cores, small in an hour."""
    net: Annotated[str | None, Flag(metavar="lstm|transformer")] = None
    """Another network, if the model has a choice: lstm or transformer. Its own settings are under --model."""
    out: Path | None = None
    """Folder of the run; default a new one under runs/."""
    init: Annotated[str | None, Flag(metavar="RUN")] = None
    """Start from the weights of another run, or of a bundled model such as pretrained:text8-arm; the data may have more
    symbols, and labels. To train a run for longer on its own data, use --resume."""
    resume: bool = False
    """Continue the run in --out, or the newest run with the same settings but for its budget. With --out, the model may
    be left out."""


def main(words: Words) -> int:
    from unordinal.experiments import EXPERIMENTS
    from unordinal.recipes import RECIPES

    known = {*RECIPES, *EXPERIMENTS}
    name = next((word for word in words.all_plain if word in known), None)
    if name is None and words.has("--resume") and words.has("--out") and not words.plain:
        from unordinal.cli.resume import resume_run

        return resume_run(words)
    return train_named(words, name or (words.plain[0] if words.plain else ""))


def train_named(words: Words, name: str) -> int:
    """Train a model, or an experiment of the paper, by name."""
    from unordinal.api import warm_start, warmed
    from unordinal.data import source_of
    from unordinal.overrides import with_settings
    from unordinal.parallel.group import current_group
    from unordinal.recipes import RECIPES, configured, suited_to
    from unordinal.runs.folder import RunFolder
    from unordinal.runs.lock import was_this_job
    from unordinal.train.start import check_same_run

    # MODEL, --size, --data and --net come first, since they choose the defaults of everything else.
    data, size, wants_help = words.value("--data"), words.value("--size") or "tiny", words.has(*HELP)
    if wants_help and not name:
        name = "arm"
    check_named(words, name, data, is_model=name in RECIPES)
    lines: Any = {"lines": words.has("--lines"), "column": words.value("--column")}
    source = None if data is None else source_of(data, **lines)
    for_lines = next((flag for flag in ("--labels", "--cut") if words.has(flag)), None)
    if for_lines and source is not None and source.key == "text":
        raise ValueError(f"{for_lines} is for lines; add --lines")
    base = configured(name, size, data=source)
    if words.has("--net"):
        base = with_settings(base, {"net": words.value("--net")})
    warm = None if words.value("--init") is None or wants_help else warm_start(words.value("--init") or "")
    base = base if warm is None else warm.adapted(base)
    command = Command.of(TrainArgs)
    summary = command.summary.replace("NAME at size SIZE", f"{name} at size {size}")
    command = replace(command, summary=summary.replace("BUDGET", budget_text(base.train)))
    static, dynamic = list(options_of(TrainArgs)), setting_options(base)
    values = read(words, command, [*static, *dynamic])
    args, settings = TrainArgs(**given_of(static, values)), given_of(dynamic, values)
    config = with_settings(base, settings)
    group, resumes, path = current_group(), args.resume, folder_of(config, args.out, resume=args.resume)
    if is_restarted() and was_this_job(again := folder_of(config, args.out, resume=True)):
        resumes, path = True, again
    resumes, chosen = group.broadcast([resumes, str(path)])
    path = Path(chosen)
    with group.one_first():
        loaded, note = config.data.load(progress=progress), ""
        if warm is not None:
            config, loaded = warmed(config, loaded, warm, settings, progress)
    loaded.require("train", "val")
    if warm is None:
        config, note = suited_to(config, loaded, settings)
    if group.is_first and resumes and RunFolder(path).is_run:
        check_same_run(RunFolder(path).read()[0], config, RunFolder(path))
    for text in filter(None, (*loaded.notes, note)):
        say(f"Note: {text}.")
    return train_and_tell(config, loaded, path, args, resume=resumes, warm=warm, tensorboard=args.tensorboard)


def check_named(words: Words, name: str, data: str | None, *, is_model: bool) -> None:
    """Raise a ValueError if the model or its data are missing."""
    if not name:
        raise ValueError("which model? unordinal train MODEL --data WHAT; `unordinal presets` lists the models")
    if is_model and data is None and not words.has(*HELP):
        near = [option for option, _ in words.groups if get_close_matches(option, ["--data"], cutoff=0.75)]
        if near:
            raise ValueError(f"unknown option {near[0]!r}; did you mean --data?")
        raise ValueError(f"which data? unordinal train {name} --data WHAT (`unordinal data` lists what there is)")


def setting_options(config: RunConfig) -> list[Option]:
    """Return the settings of a run as options: those of the data and of training by name, others by dotted name."""
    found = [*options_of(type(config.data), value=config.data), *options_of(TrainConfig, value=config.train)]
    found = [replace(option, default=None) if option.key in BUDGET else option for option in found]
    for part in ("model", "optim"):
        value = getattr(config, part)
        found += options_of(type(value), prefix=f"{part}.", value=value)
    return found


def budget_text(config: TrainConfig) -> str:
    if config.minutes is not None:
        return f"{config.minutes:g} minutes"
    return f"{config.steps} steps" if config.steps is not None else f"{config.epochs:g} epochs"


def train_and_tell(
    config: RunConfig,
    data: "Data",
    path: Path,
    machine: MachineArgs,
    *,
    resume: bool,
    warm: "WarmStart | None" = None,
    tensorboard: bool = False,
    advice: str = ADVICE,
) -> int:
    """Train, report how it ended, and return the exit code."""
    from unordinal.runs.folder import RunFolder
    from unordinal.train.loggers import LoggingReporter, TensorBoardLogger
    from unordinal.train.start import train_run

    folder, device, unit = RunFolder(path), machine.chosen_device(), data.spec.unit
    if resume and not folder.is_run:
        say(f"Nothing to resume at {path}: starting.")
    facts: dict[str, Any] = {}
    num_symbols = round(len(data.train) * data.mean_symbols) if data.spec.ends else data.train.symbols.size

    def report(model: "CategoricalModel") -> None:
        facts["parameters"] = sum(p.numel() for p in model.parameters())
        say(
            f"{config.preset} ({config.size}, {facts['parameters']:,} parameters) on {data.spec.name}: "
            f"{data.spec.num_classes} classes, {num_symbols:,} training symbols."
        )
        if warm is not None:
            say(f"It starts from {warm.reference}, sha256 {warm.sha256[:12]}.")
        own = config.model.facts(model)
        facts.update(own)
        if own:
            text = ", ".join(f"{name.replace('_', ' ')} {plain_number(value)}" for name, value in own.items())
            say(f"{text[0].upper()}{text[1:]}.")
        if facts["parameters"] > num_symbols:
            say(f"Note: {facts['parameters']:,} weights for {num_symbols:,} symbols: it may memorise them.")
        say(f"Run folder: {path}")

    reporter: Reporter = TrainingReporter(unit, report)
    if tensorboard:
        reporter = LoggingReporter(TensorBoardLogger(), reporter, folder.path, config.to_dict())
    with closing(reporter):
        result = train_run(config, data, folder, resume=resume, warm=warm, device=device, reporter=reporter)
    tell(result, data, path, advice)
    if machine.json:
        best = result.best_bits if result.best_step else None
        values = {"run": str(path), "steps": result.step, "seconds": round(result.seconds, 3), **facts}
        values |= {"symbols_per_second": round(result.symbols_per_second, 1), "val_bits_per_dim": best, "unit": unit}
        values |= {"peak_memory_mb": peak_memory_megabytes()}
        print_json({**values, "interrupted": result.interrupted_by.name if result.interrupted_by else None})
    return 128 + result.interrupted_by if result.interrupted_by else 0


def tell(result: "Outcome", data: "Data", path: Path, advice: str) -> None:
    """Report how a training ended, and whether the model beats counts."""
    from unordinal.evaluate.counts import trivial_bits

    if result.was_finished:
        spent = "" if result.seconds < 60 else f", {result.seconds / 60:.1f} minutes"
        say(
            f"{path} is already finished ({result.step} steps{spent}). Budgets count from the start of the run: give a "
            "larger one to continue."
        )
        return
    if result.interrupted_by:
        say(f"{result.interrupted_by.name}: saved at step {result.step}; {advice}.")
        return
    say(f"Done: {result.step} steps, {result.seconds:.0f} s, {result.symbols_per_second:,.0f} symbols/s.")
    unit = data.spec.unit
    say(f"Kept the weights of step {result.best_step}: validation {result.best_bits:.4f} {unit}.")
    name, bits = trivial_bits(data)
    verdict = "the model is better" if result.best_bits < bits else "the model is not better yet: train it longer"
    say(f"{name} of the training data give {bits:.4f}: {verdict}.")
    say(f"Score them with: unordinal evaluate {path}")


def plain_number(value: Any) -> str:
    """Return a count with thousands separators; anything else as it is."""
    return f"{value:,}" if isinstance(value, int) else str(value)


def folder_of(config: RunConfig, out: Path | None, *, resume: bool) -> Path:
    """Return --out; else the newest run of these settings when resuming; else the first free name under runs/."""
    if out is not None:
        return out
    from unordinal.runs.folder import RunFolder
    from unordinal.train.start import CHANGEABLE

    base = Path("runs") / f"{config.preset.replace('/', '-')}-{config.size}"
    if resume:
        candidates = [path for path in base.parent.glob(f"{base.name}*") if (path / "config.json").is_file()]
        for path in sorted(candidates, key=lambda path: (path / "config.json").stat().st_mtime, reverse=True):
            try:
                if not differences(RunFolder(path).read()[0], config, ignore=(*CHANGEABLE, *SUITED)):
                    return path
            except ValueError:  # a damaged neighbour is not the run that is looked for
                continue
    return free_name(base)


def free_name(base: Path) -> Path:
    """Return `base`, or `base` with the first number behind it that is free."""
    number = 1
    while (path := base if number == 1 else base.with_name(f"{base.name}-{number}")).exists():
        number += 1
    return path
