"""Recipes: a recipe describes a model and its settings at every size."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from unordinal.config import ModelSettings, OptimConfig, Shape, Size, TrainConfig

Task = Literal["text8", "enwik8", "toy", "cityscapes", "sequences", "maps"]
"""What a plan is for: a data set of the paper, or the user's own sequences or maps."""
MAPS = ("cityscapes", "maps")  # the tasks whose examples are maps

MINUTES: dict[Size, float] = {"tiny": 2, "small": 60}  # training budgets of the sizes that are not the paper's
# The optimisers of sizes tiny and small, chosen for fast progress in the first minutes.
QUICK_ADAMW = OptimConfig("adamw", beta2=0.99, weight_decay=0.01, warmup=50, decay_to_zero=True, clip=1.0, ema=0.99)
QUICK_MUON = replace(QUICK_ADAMW, optimizer="muon", matrix_lr=0.012)

# How the paper trains all models of maps (appendix B.2), with a warm-up of ten epochs of 2500 maps.
MAP_TRAIN = TrainConfig(epochs=2000, batch_size=64, lr=1e-3)
MAP_OPTIM = OptimConfig(optimizer="adamax", warmup=round(10 * 2500 / 64), decay_per_epoch=0.995, ema=0.0)


@dataclass(frozen=True)
class Plan:
    """The settings of a run that a recipe chooses for a size and a task.

    Args:
        model: the settings of the model, which can build it.
        train: the training budget, batch size and learning rate.
        optim: the optimiser and its learning rate schedule.

    >>> from unordinal import RECIPES
    >>> RECIPES["arm"].plan("tiny", "text8").train.minutes
    2
    """

    model: ModelSettings
    train: TrainConfig
    optim: OptimConfig


@dataclass(frozen=True)
class Recipe:
    """How to configure a model, at every size and for every task; a value of RECIPES.

    Args:
        description: the model in a few words.
        settings: the class of the model's settings, a subclass of `ModelSettings`.
        plan: returns the settings of a run for a size (tiny, small or paper) and a task.
        takes: the shapes of data that the model takes, sequences or maps.
        variants: changes of settings, by name, that are timed separately in the table of sampling times.

    >>> from unordinal import RECIPES
    >>> RECIPES["multinomial"].takes
    ('sequences', 'maps')
    """

    description: str
    settings: type
    plan: Callable[[Size, Task], Plan]
    takes: tuple[Shape, ...] = ("sequences",)
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)


def toy_train(size: Size) -> TrainConfig:
    """Return the training settings for the quantised eight Gaussians of appendix C."""
    return TrainConfig(minutes=5 if size == "paper" else MINUTES[size], batch_size=256, lr=4e-3)
