"""What a recipe is: a model by name, its settings at every size, and the paper's experiments with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from unordinal.config import DataConfig, ModelSettings, OptimConfig, Shape, Size, TrainConfig

Task = Literal["text8", "enwik8", "toy", "cityscapes", "sequences", "maps"]
"""What a plan is made for: a data set of the paper, or data of one's own by their shape."""

EXPERIMENT_DATA: dict[str, DataConfig] = {
    "text8": DataConfig("text8", alphabet="text8", length=256),
    "enwik8": DataConfig("enwik8", alphabet="bytes", length=320),
    "toy": DataConfig("eight-gaussians"),
    "cityscapes": DataConfig("cityscapes"),
}

# The optimisers of sizes tiny and small: what counts in minutes is how fast a network learns at first.
QUICK_ADAMW = OptimConfig(
    optimizer="adamw", beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99
)
QUICK_MUON = OptimConfig(
    optimizer="muon", matrix_lr=0.012, beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99
)


@dataclass(frozen=True)
class Plan:
    """What a recipe gives for a size and a task."""

    model: ModelSettings
    train: TrainConfig
    optim: OptimConfig


@dataclass(frozen=True)
class Recipe:
    """A model by name.

    `settings` is the dataclass of its settings, whose `build(spec)` makes the model; `plan(size, task)` gives the
    settings, budget and optimiser of a size. `experiments` are the paper's data sets that the model was run on: `text8`
    is shown as text8/NAME, and one that holds a slash has that very name. `variants` are changes of settings, by name,
    that the table of sampling times shows beside each other.
    """

    description: str
    settings: type
    plan: Callable[[Size, Task], Plan]
    experiments: tuple[str, ...] = ()
    takes: tuple[Shape, ...] = ("sequences",)
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


def is_map(task: Task) -> bool:
    """Whether the examples of a task are maps."""
    return task in ("cityscapes", "maps")


def minutes(size: Size) -> float:
    """The budget of a size that is not the paper's."""
    return 2 if size == "tiny" else 60


def toy_train(size: Size) -> TrainConfig:
    """The budget on the quantised eight Gaussians of appendix C."""
    return TrainConfig(minutes=5 if size == "paper" else minutes(size), batch_size=256, lr=4e-3)
