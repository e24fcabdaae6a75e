"""Every model in one line: `unordinal.arm(num_classes=27, length=256)`, with the settings of its recipe."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from unordinal.config import with_settings
from unordinal.recipes import RECIPES, configured

if TYPE_CHECKING:
    from unordinal.model import CategoricalModel


def constructor(name: str) -> "Callable[..., CategoricalModel]":
    """Return a function that builds a model by the name of its recipe."""

    def build(
        num_classes: int,
        length: int | None = None,
        *,
        height: int | None = None,
        width: int | None = None,
        size: str = "tiny",
        **settings: Any,
    ) -> "CategoricalModel":
        """Build a model with new random weights.

        Args:
            num_classes: the number of classes K.
            length: the length of sequences.
            height: the rows of maps.
            width: the columns of maps.
            size: "tiny", "small" or "paper".
            **settings: settings of the model, by name or dotted name.

        Returns:
            The model.
        """
        from unordinal.data.spec import DataSpec

        if (length is None) == (height is None or width is None):
            raise ValueError("give the `length` of sequences, or the `height` and `width` of maps")
        shape = (length,) if length is not None else (height or 0, width or 0)
        config = configured(name, size, "sequences" if length is not None else "maps")
        return with_settings(config, settings).model.build_for(DataSpec(name, num_classes, shape))

    build.__name__ = build.__qualname__ = name.replace("-", "_")
    build.__doc__ = (build.__doc__ or "").replace("a model with", f"a model, {RECIPES[name].description}, with")
    return build


def __getattr__(name: str) -> "Callable[..., CategoricalModel]":
    recipe = next((known for known in RECIPES if known.replace("-", "_") == name), None)
    if recipe is None:
        raise AttributeError(f"there is no model {name!r}")
    return constructor(recipe)
