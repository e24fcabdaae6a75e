"""Recipes: RECIPES names every model, and `configured` turns a name and a size into a run's whole configuration.

A model is its class in `models/`, its recipe in a file here, and one line in RECIPES, where all the rest finds it.
Nothing here imports torch until a model is built.
"""

from typing import get_args

from unordinal.config import DataConfig, RunConfig, Shape, Size
from unordinal.names import unknown
from unordinal.recipes.argmax_flow import FLOWS
from unordinal.recipes.arm import ARM, ARM_XL
from unordinal.recipes.diffusion import MULTINOMIAL
from unordinal.recipes.discrete_flow import DISCRETE_FLOW
from unordinal.recipes.latent_flow import AF_AF, CATEGORICAL_NF, IAF_SCF, VAE
from unordinal.recipes.recipe import EXPERIMENT_DATA, MAPS, Plan, Recipe, Task

__all__ = ["RECIPES", "SIZES", "Plan", "Recipe", "configured", "experiments", "shape_wanted"]

RECIPES: dict[str, Recipe] = {
    "multinomial": MULTINOMIAL,
    "arm": ARM,
    "arm-xl": ARM_XL,
    **FLOWS,
    "discrete-flow": DISCRETE_FLOW,
    "latent-af-af": AF_AF,
    "latent-iaf-scf": IAF_SCF,
    "categorical-nf": CATEGORICAL_NF,
    "vae": VAE,
}
SIZES: tuple[Size, ...] = get_args(Size)


def experiments() -> dict[str, tuple[str, Task]]:
    """The paper's experiments by name, text8/arm say: the name of a recipe, and the data set that it is run on."""
    found: dict[str, tuple[str, Task]] = {}
    for name, recipe in RECIPES.items():
        for entry in recipe.experiments:
            task: Task = entry.partition("/")[0]  # type: ignore[assignment]
            found[entry if "/" in entry else f"{entry}/{name}"] = (name, task)
    return found


def shape_wanted(name: str) -> Shape | None:
    """The shape that the data of an experiment must have; None of a model, which follows its data."""
    known = experiments()
    return None if name not in known else "maps" if known[name][1] in MAPS else "sequences"


def configured(name: str, size: str = "tiny", shape: Shape = "sequences") -> RunConfig:
    """The configuration of an experiment of the paper, or of a model for one's own data of a shape.

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
    data = EXPERIMENT_DATA.get(task, DataConfig(""))
    return RunConfig(name, recipe, size, data, plan.model, plan.train, plan.optim)


def unknown_name(name: str) -> ValueError:
    """The error for a name that is neither a model nor an experiment, with the nearest of its own kind."""
    data, slash, model = name.partition("/")
    if data in EXPERIMENT_DATA and model in RECIPES:
        return ValueError(f"the paper did not run {model} on {data}; train the model {model} on data of yours")
    kind, known = ("experiment", list(experiments())) if slash else ("model", list(RECIPES))
    return unknown(kind, name, known, cutoff=0.4, listed_by="`unordinal presets` lists models and experiments")
