"""Recipes of all models: RECIPES lists them, and `configured` returns the configuration of a run by name and size.

A new model needs a class in `models/`, a recipe here and a line in RECIPES. Only building a model imports torch.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, get_args

from unordinal.config import RunConfig, Shape, Size, paths_of
from unordinal.experiments import DATA, EXPERIMENTS
from unordinal.names import unknown
from unordinal.overrides import with_settings
from unordinal.recipes.argmax_flow import FLOWS
from unordinal.recipes.arm import ARM, ARM_XL
from unordinal.recipes.block import BLOCK
from unordinal.recipes.continuous import ABSORBING, UNIFORM
from unordinal.recipes.diffusion import MULTINOMIAL
from unordinal.recipes.discrete_flow import DISCRETE_FLOW
from unordinal.recipes.latent_flow import AF_AF, CATEGORICAL_NF, IAF_SCF, VAE
from unordinal.recipes.recipe import MAPS, Plan, Recipe, Task
from unordinal.recipes.tree import CHOW_LIU, INDEPENDENT

if TYPE_CHECKING:
    from unordinal.data.source import Source
    from unordinal.data.splits import Data

__all__ = ["RECIPES", "SIZES", "Plan", "Recipe", "configured", "suited_to"]

RECIPES: dict[str, Recipe] = {
    "multinomial": MULTINOMIAL,
    "uniform": UNIFORM,
    "absorbing": ABSORBING,
    "arm": ARM,
    "block": BLOCK,
    "arm-xl": ARM_XL,
    **FLOWS,
    "discrete-flow": DISCRETE_FLOW,
    "latent-af-af": AF_AF,
    "latent-iaf-scf": IAF_SCF,
    "categorical-nf": CATEGORICAL_NF,
    "vae": VAE,
    "chow-liu": CHOW_LIU,
    "independent": INDEPENDENT,
}
"""The recipe of every model by its name, such as "arm"; models can be added."""
SIZES: tuple[Size, ...] = get_args(Size)
USUAL_POSITIONS = 256  # of the examples for which the batch sizes were chosen
MOST_EXAMPLES = 256  # per step, however short they are
FEW_ROWS = 5000
ROW_POSITIONS = 2048  # of a step of rows whose positions are places
FEW_ROWS_POSITIONS = 3600  # the same for fewer than FEW_ROWS rows
FEW_ROWS_NET: dict[str, Any] = {"width": 64, "num_blocks": 2, "conv": 0, "dropout": 0.1}  # of arm
MORE_ROWS_NET: dict[str, Any] = {"dropout": 0.1}
PER_COLUMN, LEAST_PER_COLUMN = 10, 2  # rows per column below which dropout is higher, and a sum of all columns suits
LEAST_ROWS: dict[str, Any] = {**FEW_ROWS_NET, "num_blocks": 1, "dropout": 0.3, "sums": 128}
LEAST_ROWS |= {"lr": 1e-3, "matrix_lr": 0.005, "batch_size": 40}
TABLE_NET: dict[str, Any] = {"width": 96, "num_blocks": 2, "conv": 0, "dropout": 0.1}  # of arm in any order
TABLE_RATES = {"lr": 1.5e-3, "matrix_lr": 0.01}  # of arm in any order, and of diffusions
MOST_VALIDATED = 2000  # rows
PATIENCE = 3  # validations
FEW_SYMBOLS = 500_000  # of lines


def configured(name: str, size: str = "tiny", shape: Shape | None = None, *, data: "Source | None" = None) -> RunConfig:
    """Return the configuration of a run: of an experiment of the paper, or of a model for the user's own data.

    Args:
        name: an experiment, such as text8/multinomial, or a model, a key of RECIPES.
        size: tiny (trains in minutes on a CPU), small (an hour) or paper.
        shape: the shape of the user's data, sequences or maps; by default that of `data`.
        data: the user's data; experiments have data of their own, whose settings other data take over.

    Returns:
        The configuration, which `unordinal.overrides.with_settings` can change.

    >>> configured("text8/multinomial", "paper").model.num_steps
    1000
    """
    from unordinal.data import source_of
    from unordinal.data.given import GivenSource

    if size not in SIZES:
        raise ValueError(f"unknown size {size!r}; expected {', '.join(SIZES)}")
    known: dict[str, tuple[str, Task]] = {**EXPERIMENTS}
    if name in RECIPES:
        takes = RECIPES[name].takes
        shape = shape or (takes[0] if data is None else data.shape)
        if shape not in takes:
            raise ValueError(f"{name} is a model of {' and '.join(takes)}, but the data are {shape}")
        known = {name: (name, shape)}
    if name not in known:
        raise unknown_name(name)
    recipe, task = known[name]
    if task in DATA:
        own, settings = DATA[task].source, DATA[task].settings
        wanted = "maps" if task in MAPS else "sequences"
        if data is not None and data.shape != wanted:
            others = "streets, cityscapes or maps:PATH" if wanted == "maps" else "a text or an array of sequences"
            raise ValueError(f"{name} takes {wanted}, but {data.name} gives {data.shape}; use {others}")
        data = (source_of(own) if data is None else data).adapted(**settings)
    plan = RECIPES[recipe].plan(size, task)
    return RunConfig(name, recipe, size, data or GivenSource(), plan.model, plan.train, plan.optim)


def suited_to(config: RunConfig, data: "Data", chosen: Collection[str] = ()) -> tuple[RunConfig, str]:
    """Return the configuration of a model with settings that suit the number and the length of the examples.

    The batch sizes of the small recipes were chosen for examples of 256 positions: a step sees about as many positions
    whatever their length. Rows whose positions are places are usually few, so that dropout (of arm), validation on all
    held-out rows and an early end suit them (measured in docs/results/rows.md). The paper's experiments and size paper
    keep the paper's settings.

    Args:
        config: the configuration.
        data: the data to train on.
        chosen: settings that the user has chosen, by name or dotted name.

    Returns:
        The new configuration, and a note for the user on what was chosen; empty if nothing was.
    """
    if config.preset not in RECIPES or config.size == "paper":
        return config, ""
    names = {name.rpartition(".")[2] for name in chosen}
    positions, train, is_rows = max(1.0, data.mean_symbols), config.train, data.spec.num_places is not None
    usual, values = train.batch_size * USUAL_POSITIONS / positions, dict[str, Any]()
    if is_rows:
        values = {"validate_examples": min(MOST_VALIDATED, max(1, len(data.val))), "patience": PATIENCE}
        values |= suited_to_rows(config, data)
        usual = values.pop("batch_size")
    elif data.spec.ends:
        values = {"validate_examples": min(MOST_VALIDATED, max(1, len(data.val)))}
        if len(data.train) * positions < FEW_SYMBOLS and "model.net.dropout" in paths_of(config):
            values |= {"patience": PATIENCE, "dropout": 0.1}
    parts = 1 if train.accumulate is None else train.accumulate
    batch_size = min(MOST_EXAMPLES, max(train.batch_size, round(usual)))
    values = {"batch_size": max(parts, batch_size // parts * parts), **values}
    values = {name: value for name, value in values.items() if name not in names}
    config = with_settings(config, values)
    chosen_now = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
    if is_rows:
        return config, f"chosen for {len(data.train):,} rows of {positions:g} places: {chosen_now}"
    is_noted = data.spec.ends and "dropout" in values
    return config, f"chosen for {len(data.train):,} lines of {positions:.1f} symbols: {chosen_now}" if is_noted else ""


def suited_to_rows(config: RunConfig, data: "Data") -> dict[str, Any]:
    """Return settings by name that suit the number of rows, and, for arm, the number of rows for each column."""
    rows, columns = len(data.train), data.mean_symbols
    per_step: dict[str, Any] = {"batch_size": (FEW_ROWS_POSITIONS if rows < FEW_ROWS else ROW_POSITIONS) / columns}
    if config.recipe in ("absorbing", "multinomial", "uniform"):  # the noise makes the rows differ
        return {**per_step, **TABLE_RATES}
    if config.recipe != "arm":
        return per_step
    order = getattr(config.model, "order", None) or ("any" if data.spec.schema else "given")
    if order == "any":  # the orders make the rows differ
        return {**per_step, **TABLE_RATES, **(FEW_ROWS_NET if rows < FEW_ROWS else TABLE_NET)}
    values = {**per_step, **(FEW_ROWS_NET if rows < FEW_ROWS else MORE_ROWS_NET)}
    if data.spec.schema and rows >= FEW_ROWS:
        values |= {**TABLE_RATES, **TABLE_NET, "dropout": 0.15}
    if rows < LEAST_PER_COLUMN * columns:
        values = dict(LEAST_ROWS)
    elif rows < PER_COLUMN * columns:
        values |= {"dropout": 0.2, "batch_size": ROW_POSITIONS / columns}
    if order == "both":  # each row trains one of the networks
        values["batch_size"] = round(values["batch_size"]) * (getattr(config.model, "num_orders", None) or 4)
    return values


def unknown_name(name: str) -> ValueError:
    """Return the error for a name that is neither a model nor an experiment; it suggests a similar one."""
    data, slash, model = name.partition("/")
    if data in DATA and model in RECIPES:
        return ValueError(f"the paper did not run {model} on {data}; train the model {model} on your own data instead")
    what, known = ("experiment", list(EXPERIMENTS)) if slash else ("model", list(RECIPES))
    return unknown(what, name, known, cutoff=0.4, listed_by="`unordinal presets` lists models and experiments")
