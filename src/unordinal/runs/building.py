"""Build the model that a run's configuration describes, and no larger one than its weights are for."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from unordinal.config import RunConfig, paths_of
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel

LARGEST_NUMBER = 10**7  # in the settings of a model; widths, lengths and numbers of steps are far below
SLACK = 2  # weights that are registered twice, under two names


def build_for(config: RunConfig, spec: DataSpec, weights: Path) -> CategoricalModel:
    """Return the model of a configuration; raise a ValueError once it has more weights than the file holds bytes for.

    A configuration comes with the weights from wherever those come from: it must not be able to fill the memory.
    """
    for name, value in paths_of(config.model).items():
        if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise ValueError(f"config.json is damaged: {name} is {value}")
    if not weights.exists():
        return config.model.build_for(spec)
    try:
        with limited(SLACK * weights.stat().st_size):
            return config.model.build_for(spec)
    except (RuntimeError, MemoryError, ArithmeticError, AssertionError, TypeError, LookupError) as error:
        raise ValueError(f"the model that config.json describes cannot be built: {error}") from error


@contextmanager
def limited(num_bytes: int) -> Iterator[None]:
    """Raise a ValueError when the modules that are made meanwhile have more bytes of parameters."""
    made = 0

    def count(_module: nn.Module, _name: str, parameter: nn.Parameter | None) -> None:
        nonlocal made
        made += 0 if parameter is None else parameter.numel()  # a weight has at least a byte
        if made > num_bytes:
            raise ValueError("the model that config.json describes is larger than its weights")

    handle = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        handle.remove()
