"""How long a sample takes: every model of the paper's time table, interleaved, in one run."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from unordinal.config import ModelSettings, with_settings
from unordinal.data.spec import DataSpec
from unordinal.progress import Progress, silent
from unordinal.recipes import RECIPES, configured

# Seconds of tab:time_experiment by preset and variant: one sample of 256 characters of text8 on a 1080Ti, but for those
# with a dagger there, 288 characters, from Tran et al. (2019), whose discrete flow is bipartite.
PAPER_SECONDS: dict[tuple[str, str], str] = {
    ("text8/arm", ""): "35.5 (of 288)",
    ("text8/latent-af-af", ""): "156",
    ("text8/latent-iaf-scf", ""): "0.04",
    ("text8/argmax-ar", ""): "115",
    ("text8/argmax-coupling", ""): "0.40",
    ("text8/discrete-flow", "bipartite"): "0.16 (of 288)",
    ("text8/multinomial", "1000 steps"): "26.6",
    ("text8/multinomial", "100 steps"): "2.4",
}
SYMBOLS = {"text8": 27, "enwik8": 256}
LONG = 10.0  # seconds of a first draw beyond which it needs no warming up


@dataclass(frozen=True)
class Timing:
    """Seconds that one sample takes; `deviation` is None of a single one."""

    preset: str
    variant: str
    size: str
    length: int
    steps: int | None
    parameters: int
    median: float
    mean: float
    deviation: float | None
    repeats: int
    paper: str | None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Entry:
    """A model that takes part, before it is built."""

    preset: str
    variant: str
    model: ModelSettings
    steps: int | None = None


@dataclass
class Contestant:
    """A model with fresh weights, and the seconds its samples took."""

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
    """Fresh weights, one sample at a time, one round of all contestants after another; and whether it was whole.

    Models with reverse steps run twice, with all of them and with `steps`; so do the variants of a recipe.
    The first round warms up and does not count, but for draws of more than `LONG` seconds. Ctrl-C ends the run early:
    what was measured until then is given.
    """
    if not presets or not lengths:
        raise ValueError("expected at least one preset and one length to time")
    entries = [entry for name in presets for entry in entries_of(name, size, steps)]
    contestants: list[Contestant] = []
    is_whole = True
    try:
        with torch.random.fork_rng(), progress("Building the models", len(entries) * len(lengths)) as advance:
            for entry in entries:
                for length in lengths:
                    contestants.append(contestant_of(entry, length, seed))
                    advance(1)
        with progress("Sampling", (repeats + 1) * len(contestants)) as advance:
            for current in range(repeats + 1):
                for contestant in contestants:
                    if len(contestant.seconds) < repeats:
                        began = time.perf_counter()
                        contestant.draw()
                        spent = time.perf_counter() - began
                        if current or spent > LONG:
                            contestant.seconds.append(spent)
                    advance(1)
    except KeyboardInterrupt:
        is_whole = False
    return [timing_of(contestant, size) for contestant in contestants if contestant.seconds], is_whole


def timing_of(contestant: Contestant, size: str) -> Timing:
    entry, seconds = contestant.entry, contestant.seconds
    is_papers = size == "paper" and contestant.length == 256
    return Timing(
        preset=entry.preset,
        variant=entry.variant,
        size=size,
        length=contestant.length,
        steps=entry.steps,
        parameters=contestant.parameters,
        median=statistics.median(seconds),
        mean=statistics.fmean(seconds),
        deviation=statistics.stdev(seconds) if len(seconds) > 1 else None,
        repeats=len(seconds),
        paper=PAPER_SECONDS.get((entry.preset, entry.variant)) if is_papers else None,
    )


def entries_of(name: str, size: str, steps: int) -> list[Entry]:
    """What takes part for a preset: every variant of its recipe, with all steps and with some where it has steps."""
    config = configured(name, size)
    if config.data.name not in SYMBOLS:
        raise ValueError(f"sampling is timed for texts, text8/... or enwik8/...; got {name}")
    entries = []
    for variant, changes in (RECIPES[config.recipe].variants or {"": {}}).items():
        model = with_settings(config, changes).model
        with torch.device("meta"):
            whole = model.build(DataSpec(config.data.name, SYMBOLS[config.data.name], (8,))).abilities.steps
        if whole is None:
            entries.append(Entry(name, variant, model))
        elif 1 <= steps <= whole:
            entries += [Entry(name, f"{taken} steps", model, taken) for taken in sorted({whole, steps}, reverse=True)]
        else:
            raise ValueError(f"`steps` must be between 1 and the {whole} of {name}, got {steps}")
    return entries


def contestant_of(entry: Entry, length: int, seed: int) -> Contestant:
    """The model with the weights and the noise of a seed."""
    torch.manual_seed(seed)
    family = entry.preset.partition("/")[0]
    model = entry.model.build(DataSpec(family, SYMBOLS[family], (length,))).eval()
    generator = torch.Generator().manual_seed(seed)
    settings: dict[str, Any] = {} if entry.steps is None else {"steps": entry.steps}
    parameters = sum(p.numel() for p in model.parameters())
    return Contestant(entry, length, parameters, lambda: model.sample(1, generator=generator, **settings))
