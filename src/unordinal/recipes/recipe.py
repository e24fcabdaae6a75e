"""What a recipe is: a model by name, its settings at every size, and the paper's experiments with it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from unordinal.config import DataConfig, ModelSettings, OptimConfig, Shape, Size, TrainConfig

Task = Literal["text8", "enwik8", "toy", "cityscapes", "sequences", "maps"]
"""What a plan is made for: a data set of the paper, or data of one's own by their shape."""
EXPERIMENT_DATA: dict[str, DataConfig] = {
    "text8": DataConfig("text8", alphabet="text8", length=256),
    "enwik8": DataConfig("enwik8", alphabet="bytes", length=320),
    "toy": DataConfig("eight-gaussians"),
    "cityscapes": DataConfig("cityscapes", flips=True),
}
MAPS = ("cityscapes", "maps")  # tasks whose examples are maps

MINUTES: dict[Size, float] = {"tiny": 2, "small": 60}  # the budgets of sizes that are not the paper's
# The optimisers of sizes tiny and small: what counts in minutes is how fast a network learns at first.
QUICK_ADAMW = OptimConfig(
    optimizer="adamw", beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99
)
QUICK_MUON = replace(QUICK_ADAMW, optimizer="muon", matrix_lr=0.012)

# How the paper trains all its models of maps (appendix B.2): a warm-up of ten epochs of 2500 maps.
MAP_TRAIN = TrainConfig(epochs=2000, batch_size=64, lr=1e-3)
MAP_OPTIM = OptimConfig(optimizer="adamax", warmup=round(10 * 2500 / 64), decay_per_epoch=0.995, ema=0.0)


@dataclass(frozen=True)
class Plan:
    """What a recipe gives for a size and a task."""

    model: ModelSettings
    train: TrainConfig
    optim: OptimConfig


@dataclass(frozen=True)
class Recipe:
    """A model by name: the dataclass of its `settings`, and its `plan` for a size and a task.

    `experiments` are the paper's data sets that it was run on: `text8` is called text8/NAME, and one that holds a slash
    has that very name. `variants` are changes of settings that the table of sampling times shows beside each other.
    """

    description: str
    settings: type
    plan: Callable[[Size, Task], Plan]
    experiments: tuple[str, ...] = ()
    takes: tuple[Shape, ...] = ("sequences",)
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


def toy_train(size: Size) -> TrainConfig:
    """The budget on the quantised eight Gaussians of appendix C."""
    return TrainConfig(minutes=5 if size == "paper" else MINUTES[size], batch_size=256, lr=4e-3)
