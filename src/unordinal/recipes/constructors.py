"""Every model in one line: `unordinal.arm(num_classes=27, length=256)`, with the settings of its recipe."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unordinal.overrides import with_settings
from unordinal.recipes import RECIPES, configured

if TYPE_CHECKING:
    from unordinal.model import CategoricalModel


def constructor(name: str) -> "Callable[..., CategoricalModel]":
    """Return a function that builds a model by the name of its recipe."""

    def build(
        num_classes: int | Sequence[int],
        length: int | None = None,
        *,
        height: int | None = None,
        width: int | None = None,
        places: bool = False,
        ends: bool = False,
        labels: Sequence[int] = (),
        size: str = "tiny",
        **settings: Any,
    ) -> "CategoricalModel":
        """Build a model with new random weights.

        Args:
            num_classes: the number of classes K, or one number for each column.
            length: the length of sequences; of the longest, if they may end early.
            height: the rows of maps.
            width: the columns of maps.
            places: whether the positions of sequences have a meaning of their own, as columns of a table do.
            ends: whether sequences may end early; all lengths are equally likely under a diffusion.
            labels: the number of classes of each label that may be given with an example.
            size: "tiny", "small" or "paper".
            **settings: settings of the model, by name or dotted name.

        Returns:
            The model.
        """
        from unordinal.data.spec import DataSpec, Label

        if (length is None) == (height is None or width is None):
            raise ValueError("give the `length` of sequences, or the `height` and `width` of maps")
        shape = (length,) if length is not None else (height or 0, width or 0)
        config = configured(name, size, "sequences" if length is not None else "maps")
        columns = () if isinstance(num_classes, int) else tuple(num_classes)
        spec = DataSpec(name, num_classes if isinstance(num_classes, int) else max(columns), shape, columns=columns)
        kinds = tuple(Label(f"label{j}", tuple(map(str, range(k)))) for j, k in enumerate(labels, start=1))
        lengths = ((0,) * ((length or 0) + 1),) if ends else ()
        spec = replace(spec, has_places=places or bool(columns), lengths=lengths, labels=kinds)
        return with_settings(config, settings).model.build_for(spec)

    build.__name__ = build.__qualname__ = name.replace("-", "_")
    build.__doc__ = (build.__doc__ or "").replace("a model with", f"a model, {RECIPES[name].description}, with")
    return build


def __getattr__(name: str) -> "Callable[..., CategoricalModel]":
    recipe = next((known for known in RECIPES if known.replace("-", "_") == name), None)
    if recipe is None:
        raise AttributeError(f"there is no model {name!r}")
    return constructor(recipe)
