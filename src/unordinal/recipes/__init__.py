"""Recipes of all models: RECIPES lists them, and `configured` returns the configuration of a run by name and size.

A new model needs a class in `models/`, a recipe here and a line in RECIPES. Only building a model imports torch.
"""

from typing import Any, get_args

from unordinal.config import DataConfig, RunConfig, Shape, Size
from unordinal.names import unknown
from unordinal.recipes.argmax_flow import FLOWS
from unordinal.recipes.arm import ARM, ARM_XL
from unordinal.recipes.continuous import ABSORBING, UNIFORM
from unordinal.recipes.diffusion import MULTINOMIAL
from unordinal.recipes.discrete_flow import DISCRETE_FLOW
from unordinal.recipes.latent_flow import AF_AF, CATEGORICAL_NF, IAF_SCF, VAE
from unordinal.recipes.recipe import EXPERIMENT_DATA, MAPS, Plan, Recipe, Task

__all__ = ["RECIPES", "SIZES", "Plan", "Recipe", "configured", "experiments", "shape_wanted"]

RECIPES: dict[str, Recipe] = {
    "multinomial": MULTINOMIAL,
    "uniform": UNIFORM,
    "absorbing": ABSORBING,
    "arm": ARM,
    "arm-xl": ARM_XL,
    **FLOWS,
    "discrete-flow": DISCRETE_FLOW,
    "latent-af-af": AF_AF,
    "latent-iaf-scf": IAF_SCF,
    "categorical-nf": CATEGORICAL_NF,
    "vae": VAE,
}
"""The recipe of every model by its name, such as "arm"; models can be added."""
SIZES: tuple[Size, ...] = get_args(Size)


def experiments() -> dict[str, tuple[str, Task]]:
    """Return the experiments of the paper by name, such as text8/arm: the name of the recipe and its data set."""
    entries: list[Any] = [(name, entry) for name, recipe in RECIPES.items() for entry in recipe.experiments]
    return {entry if "/" in entry else f"{entry}/{name}": (name, entry.partition("/")[0]) for name, entry in entries}


def shape_wanted(name: str) -> Shape | None:
    """Return the shape that the data of an experiment must have; None for a model, which adapts to its data."""
    known = experiments()
    return None if name not in known else "maps" if known[name][1] in MAPS else "sequences"


def configured(name: str, size: str = "tiny", shape: Shape = "sequences") -> RunConfig:
    """Return the configuration of a run: of an experiment of the paper, or of a model for the user's own data.

    Args:
        name: an experiment, such as text8/multinomial, or a model, a key of RECIPES.
        size: tiny (trains in minutes on a CPU), small (an hour) or paper.
        shape: the shape of the user's data, sequences or maps; experiments have data of their own.

    Returns:
        The configuration, which `unordinal.config.with_settings` can change.

    >>> configured("text8/multinomial", "paper").model.num_steps
    1000
    """
    if size not in SIZES:
        raise ValueError(f"unknown size {size!r}; expected {', '.join(SIZES)}")
    known = experiments()
    if name in RECIPES:
        if shape not in RECIPES[name].takes:
            raise ValueError(f"{name} is a model of {' and '.join(RECIPES[name].takes)}, but the data are {shape}")
        known = {name: (name, shape)}
    if name not in known:
        raise unknown_name(name)
    recipe, task = known[name]
    plan = RECIPES[recipe].plan(size, task)
    return RunConfig(name, recipe, size, EXPERIMENT_DATA.get(task, DataConfig("")), plan.model, plan.train, plan.optim)


def unknown_name(name: str) -> ValueError:
    """Return the error for a name that is neither a model nor an experiment; it suggests a similar one."""
    data, slash, model = name.partition("/")
    if data in EXPERIMENT_DATA and model in RECIPES:
        return ValueError(f"the paper did not run {model} on {data}; train the model {model} on your own data instead")
    what, known = ("experiment", list(experiments())) if slash else ("model", list(RECIPES))
    return unknown(what, name, known, cutoff=0.4, listed_by="`unordinal presets` lists models and experiments")
