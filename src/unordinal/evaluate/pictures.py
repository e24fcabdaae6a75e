"""Images of maps in the colours of their classes, with a legend: grids as PNG, diffusion chains as GIF."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.progress import Progress, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4
INCHES = 1.6  # horizontal size of a map in a grid
FRAMES = 60  # largest number of frames of a GIF
FRAME_MILLISECONDS, LAST_MILLISECONDS = 80, 2000
INVALID = ("invalid", "#ffffff")
FRAME = "#dadce0"  # colour of the line around a map
MOST_LEGEND = 32  # largest number of classes in a legend
LEGEND_ENTRY, LEGEND_ROW, TITLE = 0.95, 0.18, 0.3  # inches


def palette_of(spec: DataSpec) -> tuple[tuple[str, str], ...]:
    """Return the name and colour of each class; data without such get numbers and colours of a colour map."""
    if spec.categories:
        return spec.categories
    from matplotlib import colormaps, colors

    num = spec.num_classes
    if num <= 10:
        shades = [colormaps["tab10"](k) for k in range(num)]
    else:
        shades = [colormaps["turbo"]((k + 0.5) / num) for k in range(num)]
    return tuple((str(k), colors.to_hex(shade)) for k, shade in enumerate(shades))


def to_colours(x: Tensor, spec: DataSpec) -> np.ndarray:
    """Return the colours of classes, with white for invalid codes: (..., H, W) -> (..., H, W, 3) uint8."""
    palette = [*palette_of(spec), INVALID]
    rgb = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for _, colour in palette], np.uint8)
    return rgb[x.clamp(max=spec.num_classes).numpy()]


def legend_of(spec: DataSpec, across: float, *, with_invalid: bool) -> tuple[dict[str, Any], float]:
    """Return the legend of a figure of this width, as arguments of matplotlib, and its height in inches.

    It has the classes, the first 32 if there are more, and invalid codes.
    """
    from matplotlib.patches import Patch

    classes = palette_of(spec)
    shown = list(classes[:MOST_LEGEND])
    if len(classes) > MOST_LEGEND:
        shown.append((f"and {len(classes) - MOST_LEGEND} more", "#ffffff"))
    if with_invalid:
        shown.append(INVALID)
    handles = [Patch(facecolor=colour, edgecolor="#80868b", linewidth=0.5, label=name) for name, colour in shown]
    in_a_row = min(len(handles), max(2, int(across / LEGEND_ENTRY)))
    legend: dict[str, Any] = {"handles": handles, "ncols": in_a_row, "loc": "lower center", "fontsize": 7}
    legend |= {"frameon": False, "handlelength": 1.0, "columnspacing": 1.0}
    return legend, LEGEND_ROW * math.ceil(len(handles) / in_a_row) + 0.15


def plot_grid(
    groups: Sequence[tuple[str, Tensor]], spec: DataSpec, file: BinaryIO, *, abreast: int | None = None
) -> None:
    """Write a PNG with groups of maps (N, H, W), each under its title, and a legend.

    Args:
        groups: the titles and the maps.
        spec: the description of the maps.
        file: receives the PNG.
        abreast: how many groups stand side by side; default all of them.
    """
    figure = grid_figure(groups, spec, columns=COLUMNS, abreast=abreast)
    figure.savefig(file, format="png", dpi=130)


def grid_figure(
    groups: Sequence[tuple[str, Tensor]], spec: DataSpec, *, columns: int, abreast: int | None = None
) -> "Figure":
    """Return a figure with groups of maps, `columns` maps in a row of each group, and a legend; see `plot_grid`."""
    from matplotlib.figure import Figure

    most = max(len(x) for _, x in groups)
    columns = min(columns, most)
    rows = math.ceil(most / columns)
    height, width = groups[0][1].shape[-2:]
    with_invalid = any(bool((x >= spec.num_classes).any()) for _, x in groups)
    abreast = min(abreast or len(groups), len(groups))
    across = INCHES * columns * abreast + 0.25 * (abreast - 1) + 0.2
    settings, legend = legend_of(spec, across, with_invalid=with_invalid)
    num, tall = math.ceil(len(groups) / abreast), INCHES * height / width * rows
    down = num * (tall + TITLE) + legend
    figure = Figure(figsize=(across, down))
    for index, (title, x) in enumerate(groups):
        left = (0.1 + index % abreast * (INCHES * columns + 0.25)) / across
        bottom = legend + (num - 1 - index // abreast) * (tall + TITLE)
        axes = figure.add_axes((left, bottom / down, INCHES * columns / across, tall / down))
        axes.imshow(tile(to_colours(x, spec), columns, rows), interpolation="nearest", aspect="equal")
        axes.set_title(title, fontsize=9)
        axes.axis("off")
    figure.legend(**settings)
    return figure


def plot_stages(stages: list[tuple[float, Tensor]], spec: DataSpec, file: BinaryIO) -> None:
    """Write a PNG of denoising chains of maps: a column for each time t, with the maps x_t (N, H, W) in its rows."""
    from matplotlib.figure import Figure

    num, height, width = stages[0][1].shape
    across, gap = INCHES * len(stages), 0.06
    settings, legend = legend_of(spec, across, with_invalid=False)
    row = (INCHES - gap) * height / width + gap
    down = row * num + legend + TITLE
    figure = Figure(figsize=(across, down))
    for column, (t, x) in enumerate(stages):
        for index, picture in enumerate(to_colours(x, spec)):
            bottom = legend + row * (num - 1 - index)
            box = (column * INCHES + gap / 2, bottom + gap / 2, INCHES - gap, row - gap)
            axes = figure.add_axes((box[0] / across, box[1] / down, box[2] / across, box[3] / down))
            axes.imshow(picture, interpolation="nearest", aspect="auto")
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set(color=FRAME, linewidth=0.5)  # a map of masks is as white as the page
            if index == 0:
                axes.set_title(f"t = {round(t, 3):g}", fontsize=9)
    figure.legend(**settings)
    figure.savefig(file, format="png", dpi=130)


def tile(pictures: np.ndarray, columns: int, rows: int, gap: int = 2) -> np.ndarray:
    """Arrange images (N, H, W, 3) in rows as one image, with white gaps between them and white for missing images."""
    _, height, width, _ = pictures.shape
    out = np.full((rows * (height + gap) - gap, columns * (width + gap) - gap, 3), 255, np.uint8)
    for index, picture in enumerate(pictures):
        y, x = (index // columns) * (height + gap), (index % columns) * (width + gap)
        out[y : y + height, x : x + width] = picture
    return out


def plot_map_chain(
    chain: list[tuple[float, Tensor]], spec: DataSpec, file: BinaryIO, progress: Progress = silent
) -> None:
    """Write the chain x_T, ..., x_0 of one map, (H, W) each, as an animated GIF that pauses on the last frame."""
    from PIL import Image

    frames = []
    shown = thin_chain(chain, FRAMES)
    with progress("Drawing frames", len(shown)) as advance:
        for t, x in shown:
            figure = grid_figure([(f"t = {round(t, 3):g}", x.unsqueeze(0))], spec, columns=1)
            across, down = figure.get_size_inches()
            figure.set_size_inches(2 * across, 2 * down)
            frames.append(Image.fromarray(figure_pixels(figure)).convert("P", palette=Image.Palette.ADAPTIVE))
            advance(1)
    durations = [FRAME_MILLISECONDS] * (len(frames) - 1) + [LAST_MILLISECONDS]
    frames[0].save(file, format="GIF", save_all=True, append_images=frames[1:], duration=durations, loop=0)


def thin_chain(chain: list[tuple[float, Tensor]], most: int) -> list[tuple[float, Tensor]]:
    """Return at most `most` steps of a chain, evenly spread, including the first and the last."""
    picked = np.unique(np.linspace(0, len(chain) - 1, min(most, len(chain))).round().astype(int))
    return [chain[i] for i in picked]


def figure_pixels(figure: "Figure") -> np.ndarray:
    """Return the pixels of a figure: (H, W, 3) uint8."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
