"""Pictures of maps that several commands write."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.data.spec import DataSpec
    from unordinal.data.splits import Data

GRID_MAPS = 16


def write_grid(path: Path, groups: "Sequence[tuple[str, Tensor]]", spec: "DataSpec") -> None:
    """Titled groups of maps as one PNG."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.pictures import plot_grid

    require_maps(spec)
    if path.suffix.lower() != ".png":
        raise ValueError(f"a grid is written as .png, got {path.name}")
    with replacing(path) as file:
        plot_grid(groups, spec, file)


def first_maps(data: "Data", split: str, num: int) -> "Tensor":
    """The first examples of a split."""
    import numpy as np

    return data.split(split).examples(np.arange(min(num, len(data.split(split)))))


def require_maps(spec: "DataSpec") -> None:
    if not spec.is_map:
        raise ValueError(f"pictures are for maps; the examples of {spec.name} have shape {spec.event_shape}")
