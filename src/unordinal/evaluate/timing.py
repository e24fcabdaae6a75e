"""Measure how long models take to draw a sample, for all models of the paper's table of sampling times in one run."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from unordinal.config import ModelSettings
from unordinal.data.spec import DataSpec
from unordinal.experiments import DATA, EXPERIMENTS, SAMPLING_TIME, Figure, Task
from unordinal.overrides import with_settings
from unordinal.progress import Progress, silent
from unordinal.recipes import RECIPES, configured

LONG = 10.0  # a first draw that takes more seconds than this counts, since it needs no warming up


@dataclass(frozen=True)
class Timing:
    """The measured sampling times of one model."""

    preset: str
    variant: str
    size: str
    length: int
    steps: int | None  # reverse steps of a diffusion model
    parameters: int  # number of weights
    median: float  # seconds per sample
    mean: float
    deviation: float | None  # standard deviation; None for a single sample
    repeats: int  # number of samples
    paper: str | None  # seconds in the paper, if it has this model


@dataclass(frozen=True)
class Entry:
    """The settings of a model to time."""

    preset: str
    variant: str
    model: ModelSettings
    steps: int | None = None


@dataclass
class TimedModel:
    """A model with new random weights, and the seconds that each of its samples took."""

    entry: Entry
    length: int
    parameters: int
    draw: Callable[[], object]
    seconds: list[float] = field(default_factory=list)


def time_sampling(
    presets: list[str],
    *,
    size: str,
    lengths: list[int],
    repeats: int,
    steps: int = 100,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[list[Timing], bool]:
    """Measure how long models with new random weights take to draw one sample.

    The models take turns, so that all are affected alike by changes in the speed of the machine. The first round warms
    up and does not count, except for draws that take more than `LONG` seconds. Ctrl-C ends the measurement early.

    Args:
        presets: the experiments whose models to time, such as text8/arm, with every variant of their recipes.
        size: the size of the models.
        lengths: the lengths of the sequences to sample.
        repeats: how many samples to time for each model and length.
        steps: models with reverse steps are timed twice, with all steps and with this many.
        seed: the seed of the weights and samples.
        progress: receives the progress.

    Returns:
        The times of each model and length that was measured, and whether the measurement was completed.
    """
    if not presets or not lengths:
        raise ValueError("expected at least one preset and one length to time")
    entries = [entry for name in presets for entry in entries_of(name, size, steps)]
    models: list[TimedModel] = []
    is_whole = True
    try:
        with torch.random.fork_rng(), progress("Building the models", len(entries) * len(lengths)) as advance:
            for entry in entries:
                for length in lengths:
                    models.append(build_timed_model(entry, length, seed))
                    advance(1)
        with progress("Sampling", (repeats + 1) * len(models)) as advance:
            for current in range(repeats + 1):
                for timed in models:
                    if len(timed.seconds) < repeats:
                        began = time.perf_counter()
                        timed.draw()
                        spent = time.perf_counter() - began
                        if current or spent > LONG:
                            timed.seconds.append(spent)
                    advance(1)
    except KeyboardInterrupt:
        is_whole = False
    return [timing_of(timed, size) for timed in models if timed.seconds], is_whole


def timing_of(timed: TimedModel, size: str) -> Timing:
    """Return the statistics of the seconds that a model took."""
    entry, seconds = timed.entry, timed.seconds
    is_papers = size == "paper" and timed.length == 256
    return Timing(
        preset=entry.preset,
        variant=entry.variant,
        size=size,
        length=timed.length,
        steps=entry.steps,
        parameters=timed.parameters,
        median=statistics.median(seconds),
        mean=statistics.fmean(seconds),
        deviation=statistics.stdev(seconds) if len(seconds) > 1 else None,
        repeats=len(seconds),
        paper=paper_seconds(entry.preset, entry.variant) if is_papers else None,
    )


def paper_seconds(preset: str, variant: str) -> str | None:
    """Return the seconds that the paper gives for a model, with a remark if it has one; None if it gives none."""
    for row in SAMPLING_TIME.rows:
        own = row.settings.get("flow", "") if row.steps is None else f"{row.steps} steps"
        figure = row.figures[0]
        if (row.experiment, own) == (preset, variant) and isinstance(figure, Figure):
            return f"{figure.value:g}" + (f" ({figure.note})" if figure.note else "")
    return None


def task_of(preset: str) -> Task:
    """Return the data set of a preset of text; raise a ValueError if it has none."""
    task = EXPERIMENTS[preset][1] if preset in EXPERIMENTS else None
    if task is None or len(DATA[task].shape) > 1 or task == "toy":
        raise ValueError(f"sampling is timed for texts only, text8/... or enwik8/...; got {preset}")
    return task


def entries_of(name: str, size: str, steps: int) -> list[Entry]:
    """Return the models to time for a preset: each variant of its recipe, with all steps and with `steps` of them."""
    config = configured(name, size)
    num_classes, entries = DATA[task_of(name)].num_classes, []
    for variant, changes in (RECIPES[config.recipe].variants or {"": {}}).items():
        model = with_settings(config, changes).model
        with torch.device("meta"):
            denoiser = model.build(DataSpec(config.data.name, num_classes, (8,))).denoiser
        whole = None if denoiser is None else denoiser.whole_calls(None, 8)
        if whole is None:
            entries.append(Entry(name, variant, model))
        elif 1 <= steps <= whole:
            entries += [Entry(name, f"{taken} steps", model, taken) for taken in sorted({whole, steps}, reverse=True)]
        else:
            raise ValueError(f"`steps` must be between 1 and the {whole} of {name}, got {steps}")
    return entries


def build_timed_model(entry: Entry, length: int, seed: int) -> TimedModel:
    """Build the model of an entry; `seed` determines its weights and samples."""
    torch.manual_seed(seed)
    task = task_of(entry.preset)
    model = entry.model.build(DataSpec(task, DATA[task].num_classes, (length,))).eval()
    generator = torch.Generator().manual_seed(seed)
    settings: dict[str, Any] = {} if entry.steps is None else {"steps": entry.steps}
    parameters = sum(p.numel() for p in model.parameters())
    return TimedModel(entry, length, parameters, lambda: model.sample(1, generator=generator, **settings))
