"""Write pictures of maps, for several commands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unordinal.cli.common import check_output

if TYPE_CHECKING:
    from torch import Tensor

    from unordinal.data.spec import DataSpec
    from unordinal.data.splits import Data

GRID_MAPS = 16  # of data, where no number is given
MOST_MAPS = 64  # that a grid shows


def check_png(flag: str, path: Path | None) -> None:
    """Raise a ValueError if a picture cannot be written, before the work that it shows."""
    check_output(path)
    if path is not None and path.suffix.lower() != ".png":
        raise ValueError(f"{flag} writes a .png, got {path.name}")


def write_grid(path: Path, groups: "Sequence[tuple[str, Tensor]]", spec: "DataSpec") -> None:
    """Write titled groups of maps, the first 64 of each, as one PNG."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.pictures import plot_grid

    with replacing(path) as file:
        plot_grid([(title, x[:MOST_MAPS]) for title, x in groups], spec, file)


def first_maps(data: "Data", split: str, num: int) -> "Tensor":
    """Return the first `num` maps of a split."""
    import numpy as np

    data.require(split)
    return data.split(split).examples(np.arange(min(num, len(data.split(split)))))


def require_maps(spec: "DataSpec") -> None:
    """Raise a ValueError if the examples are not maps."""
    if not spec.is_map:
        raise ValueError(f"pictures are for maps; the examples of {spec.name} have shape {spec.event_shape}")
