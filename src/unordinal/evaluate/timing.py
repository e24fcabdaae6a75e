"""How long a sample takes: every model of the paper's time table, interleaved, in one run."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from unordinal.data.spec import DataSpec
from unordinal.models import build_model
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.presets import preset
from unordinal.progress import Progress, silent

# Seconds of tab:time_experiment by preset and steps: one sample of 256 characters of text8 on a 1080Ti, but for those
# with a dagger there, 288 characters, from Tran et al. (2019), whose discrete flow is bipartite.
PAPER_SECONDS: dict[tuple[str, int | None], str] = {
    ("text8/arm", None): "35.5 (of 288)",
    ("text8/latent-af-af", None): "156",
    ("text8/latent-iaf-scf", None): "0.04",
    ("text8/argmax-ar", None): "115",
    ("text8/argmax-coupling", None): "0.40",
    ("text8/discrete-flow", None): "0.16 (of 288, bipartite)",
    ("text8/multinomial", 1000): "26.6",
    ("text8/multinomial", 100): "2.4",
}
SYMBOLS = {"text8": 27, "enwik8": 256}


@dataclass(frozen=True)
class Timing:
    """Seconds that one sample takes."""

    preset: str
    size: str
    length: int
    steps: int | None
    parameters: int
    median: float
    mean: float
    deviation: float
    repeats: int
    paper: str | None

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))


def time_sampling(
    presets: list[str],
    *,
    size: str,
    lengths: list[int],
    repeats: int,
    steps: int = 100,
    seed: int = 0,
    progress: Progress = silent,
) -> list[Timing]:
    """Fresh weights, one sample at a time, one round of all contestants after another.

    Diffusions run twice, with all their steps and with `steps`.
    """
    contestants: list[Contestant] = []
    with torch.random.fork_rng(), progress("Building the models", len(presets) * len(lengths)) as advance:
        for name in presets:
            for length in lengths:
                contestants += contestants_of(name, size, length, steps, seed)
                advance(1)
    seconds: list[list[float]] = [[] for _ in contestants]
    with progress("Sampling", (repeats + 1) * len(contestants)) as advance:
        for current in range(repeats + 1):  # the first round does not count
            for index, (*_, draw) in enumerate(contestants):
                began = time.perf_counter()
                draw()
                if current:
                    seconds[index].append(time.perf_counter() - began)
                advance(1)
    return [
        Timing(
            preset=name,
            size=size,
            length=length,
            steps=taken,
            parameters=parameters,
            median=statistics.median(values),
            mean=statistics.fmean(values),
            deviation=statistics.stdev(values) if repeats > 1 else 0.0,
            repeats=repeats,
            paper=PAPER_SECONDS.get((name, taken)) if length == 256 else None,
        )
        for (name, length, taken, parameters, _), values in zip(contestants, seconds, strict=True)
    ]


Contestant = tuple[str, int, int | None, int, Callable[[], object]]  # preset, length, steps, parameters, what draws


def contestants_of(name: str, size: str, length: int, steps: int, seed: int) -> list[Contestant]:
    """What is drawn for a preset, with all steps and with some where it has steps."""
    config = preset(name, size)
    family = name.partition("/")[0]
    if family not in SYMBOLS:
        raise ValueError(f"sampling is timed for texts, text8/... or enwik8/...; got {name}")
    torch.manual_seed(seed)
    model = build_model(config.model, DataSpec(family, SYMBOLS[family], (length,))).eval()
    parameters = sum(p.numel() for p in model.parameters())
    generator = torch.Generator().manual_seed(seed)
    if not isinstance(model, MultinomialDiffusion):
        return [(name, length, None, parameters, lambda: model.sample(1, generator=generator))]
    model.times_of(steps)  # complains about more steps than there are
    both = sorted({model.num_steps, steps}, reverse=True)
    return [
        (name, length, taken, parameters, lambda taken=taken: model.sample(1, generator=generator, steps=taken))  # type: ignore[misc]
        for taken in both
    ]
