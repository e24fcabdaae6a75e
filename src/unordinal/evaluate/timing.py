"""How long a sample takes: every model of the paper's time table, interleaved, in one run."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from unordinal.data.spec import DataSpec
from unordinal.model_config import DiscreteFlowConfig, ModelConfig, MultinomialConfig
from unordinal.models import build_model
from unordinal.presets import preset
from unordinal.progress import Progress, silent

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
    """Seconds that one sample takes."""

    preset: str
    variant: str
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


@dataclass(frozen=True)
class Contestant:
    """A model under a preset's name, and what draws one sample of it."""

    preset: str
    variant: str
    length: int
    steps: int | None
    parameters: int
    draw: Callable[[], object]


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

    Diffusions run twice, with all their steps and with `steps`; so do discrete flows, autoregressive and bipartite.
    """
    contestants: list[Contestant] = []
    with torch.random.fork_rng(), progress("Building the models", len(presets) * len(lengths)) as advance:
        for name in presets:
            for length in lengths:
                contestants += contestants_of(name, size, length, steps, seed)
                advance(1)
    seconds: list[list[float]] = [[] for _ in contestants]
    with progress("Sampling", (repeats + 1) * len(contestants)) as advance:
        for current in range(repeats + 1):  # the first round warms up; a draw that is long anyway counts at once
            for contestant, values in zip(contestants, seconds, strict=True):
                if len(values) < repeats:
                    began = time.perf_counter()
                    contestant.draw()
                    spent = time.perf_counter() - began
                    if current or spent > LONG:
                        values.append(spent)
                advance(1)
    return [
        Timing(
            preset=contestant.preset,
            variant=contestant.variant,
            size=size,
            length=contestant.length,
            steps=contestant.steps,
            parameters=contestant.parameters,
            median=statistics.median(values),
            mean=statistics.fmean(values),
            deviation=statistics.stdev(values) if repeats > 1 else 0.0,
            repeats=repeats,
            paper=PAPER_SECONDS.get((contestant.preset, contestant.variant)) if contestant.length == 256 else None,
        )
        for contestant, values in zip(contestants, seconds, strict=True)
    ]


def contestants_of(name: str, size: str, length: int, steps: int, seed: int) -> list[Contestant]:
    """What is drawn for a preset: with all steps and with some where it has steps, both kinds of discrete flows."""
    config = preset(name, size)
    family = name.partition("/")[0]
    if family not in SYMBOLS:
        raise ValueError(f"sampling is timed for texts, text8/... or enwik8/...; got {name}")
    generator = torch.Generator().manual_seed(seed)

    def contestant(model_config: ModelConfig, variant: str = "", taken: int | None = None) -> Contestant:
        torch.manual_seed(seed)
        model = build_model(model_config, DataSpec(family, SYMBOLS[family], (length,))).eval()
        settings = {} if taken is None else {"steps": taken}
        return Contestant(
            preset=name,
            variant=variant,
            length=length,
            steps=taken,
            parameters=sum(p.numel() for p in model.parameters()),
            draw=lambda: model.sample(1, generator=generator, **settings),
        )

    if isinstance(config.model, MultinomialConfig):
        whole = config.model.num_steps
        if not 1 <= steps <= whole:
            raise ValueError(f"steps must be between 1 and the {whole} of {name}, got {steps}")
        return [contestant(config.model, f"{n} steps", n) for n in sorted({whole, steps}, reverse=True)]
    if isinstance(config.model, DiscreteFlowConfig):
        kinds: dict[str, Literal["ar", "bipartite"]] = {"autoregressive": "ar", "bipartite": "bipartite"}
        return [contestant(replace(config.model, flow=flow), variant) for variant, flow in kinds.items()]
    return [contestant(config.model)]
