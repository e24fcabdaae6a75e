"""Validate what is passed to a model: examples, known positions and the shapes of samples."""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from unordinal.columns import Classes

if TYPE_CHECKING:
    from unordinal.model import CategoricalModel


def as_classes(values: Any, name: str) -> Tensor:
    """Return a tensor, an array or a nested list as a tensor; `name` is what error messages call it."""
    if isinstance(values, Tensor):
        return values
    try:
        return torch.from_numpy(np.array(values))  # a copy: torch warns of arrays that cannot be written to
    except (ValueError, TypeError) as error:
        expected = "an array of integer classes, or lists of equal length"
        raise ValueError(f"`{name}` must be {expected}, got {type(values).__name__}") from error


def check_classes(model: "CategoricalModel", x: Tensor) -> None:
    """Raise a ValueError if x is not a batch of this model's data.

    It reads the values, so training losses do not call it. Tensors on the meta device have no values to read.
    """
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise ValueError(f"x has dtype {x.dtype}; expected integer classes")
    if x.dim() != 1 + len(model.event_shape) or x.numel() == 0:
        expected = ", ".join(map(str, model.event_shape))
        raise ValueError(f"x has shape {tuple(x.shape)}; expected (batch, {expected})")
    check_sides(model, tuple(x.shape[1:]))
    check_places(model, tuple(x.shape[1:]))
    if x.device.type == "meta":
        return
    if (low := int(x.min())) < 0:
        raise ValueError(f"x has class {low}, but num_classes={model.num_classes}; classes run from 0")
    present = model.present(x)
    if present is not None:
        if x.shape[1] > model.event_shape[0]:
            raise ValueError(f"x has {x.shape[1]} positions; this model's examples have at most {model.event_shape[0]}")
        if bool((present.diff(dim=1) & present[:, 1:]).any()):
            raise ValueError(f"x has symbols after an end, class {model.num_classes}; only ends may follow an end")
        x = torch.where(present, x, 0)
    hint = f", but num_classes={model.num_classes}; was it encoded with this model's vocabulary?"
    check_range(model.classes, x, "x", hint)


def check_range(classes: Classes, x: Tensor, name: str, hint: str) -> None:
    """Raise a ValueError if a class (B, *D) is beyond those of its position; columns are named, others get a hint."""
    if not classes.columns:
        if (high := int(x.max())) >= classes.most:
            raise ValueError(f"{name} has class {high}{hint}")
        return
    wrong = (x >= classes.sizes(x)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        found = f"{name} has class {int(x[row, column])} in row {row}, column {column}"
        raise ValueError(f"{found}, which has {classes.columns[column]} classes")


def check_places(model: "CategoricalModel", shape: tuple[int, ...]) -> None:
    """Raise a ValueError for a shape that a model with weights for each place was not trained with."""
    if model.has_places and torch.Size(shape) != model.event_shape:
        own = " x ".join(map(str, model.event_shape))
        got = " x ".join(map(str, shape))
        raise ValueError(f"this model has weights for each of its {own} places, got examples of {got} (see `places`)")


def check_sides(model: "CategoricalModel", shape: tuple[int, ...]) -> None:
    """Raise a ValueError if a side is not a multiple of `side_multiple`."""
    if any(side % model.side_multiple for side in shape):
        raise ValueError(f"this model needs sides that are multiples of {model.side_multiple}, got {shape}")


def sample_shape(
    model: "CategoricalModel", num_samples: int, event_shape: tuple[int, ...] | None, unknown: dict[str, object]
) -> torch.Size:
    """Validate the settings that all models share and return the shape of a sample; raise for `unknown` settings."""
    if unknown:
        raise ValueError(f"sampling from {type(model).__name__} has no setting {', '.join(unknown)}")
    shape = torch.Size(model.event_shape if event_shape is None else event_shape)
    if not isinstance(num_samples, int) or num_samples < 1:
        raise ValueError(f"`num_samples` must be a whole number of at least 1, got {num_samples}")
    if len(shape) != len(model.event_shape) or min(shape) < 1 or (model.ends and shape[0] > model.event_shape[0]):
        raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(model.event_shape)}")
    check_places(model, tuple(shape))
    check_sides(model, tuple(shape))
    return shape
