"""Pictures of maps: colours, legends, frames."""

import io

import numpy as np
import torch
from PIL import Image

from unordinal.data.spec import DataSpec
from unordinal.evaluate.pictures import (
    INVALID,
    grid_figure,
    legend_of,
    palette_of,
    plot_grid,
    plot_map_chain,
    plot_stages,
    thin_chain,
    tile,
    to_colours,
)

NAMED = DataSpec("named", 2, (2, 4), categories=(("sea", "#0000ff"), ("land", "#00ff00")))


def test_classes_have_their_colours_and_invalid_codes_are_white() -> None:
    x = torch.tensor([[0, 1], [2, 7]])
    assert to_colours(x, NAMED).tolist() == [[[0, 0, 255], [0, 255, 0]], [[255, 255, 255], [255, 255, 255]]]


def test_classes_without_names_have_colours_that_differ() -> None:
    for num in (2, 10, 40, 256):
        palette = palette_of(DataSpec("bare", num, (2, 4)))
        assert len({colour for _, colour in palette}) == num
        assert palette[1][0] == "1"


def test_legends_say_what_they_leave_out() -> None:
    labels = [h.get_label() for h in legend_of(DataSpec("bare", 40, (2, 4)), 8.0, with_invalid=True)[0]["handles"]]
    assert labels[:2] == ["0", "1"]
    assert labels[-2:] == ["and 8 more", INVALID[0]]
    assert [h.get_label() for h in legend_of(NAMED, 8.0, with_invalid=False)[0]["handles"]] == ["sea", "land"]


def test_tiles_lie_row_by_row() -> None:
    pictures = np.stack([np.full((2, 3, 3), k, np.uint8) for k in range(3)])
    out = tile(pictures, columns=2, rows=2, gap=1)
    assert out.shape == (5, 7, 3)
    assert (out[0, 0, 0], out[0, 4, 0], out[3, 0, 0]) == (0, 1, 2)
    assert out[2, 2, 0] == 255  # the gap
    assert out[3, 4, 0] == 255  # no fourth one


def test_long_chains_are_thinned_evenly_to_their_ends() -> None:
    chain: list[tuple[float, torch.Tensor]] = [(t, torch.zeros(2, 4)) for t in range(500, -1, -1)]
    times = [t for t, _ in thin_chain(chain, 60)]
    assert len(times) == 60
    assert (times[0], times[-1]) == (500, 0)
    assert len(thin_chain(chain[:7], 60)) == 7


def test_a_grid_and_a_chain_can_be_opened() -> None:
    x = torch.randint(0, 3, (5, 2, 4))
    for spec in (NAMED, DataSpec("bare", 40, (2, 4))):
        file = io.BytesIO()
        plot_grid([("a", x), ("b", x[:2])], spec, file)
        assert Image.open(file).format == "PNG"
    file = io.BytesIO()
    plot_map_chain([(2, x[0]), (1, x[1]), (0, x[2])], NAMED, file)
    image = Image.open(file)
    assert (image.format, getattr(image, "n_frames", 0)) == ("GIF", 3)


def test_stages_have_a_row_for_each_map_and_a_column_for_each_time() -> None:
    stages: list[tuple[float, torch.Tensor]] = [(t, torch.full((3, 2, 4), t % 2)) for t in (9, 4, 0)]
    file = io.BytesIO()
    plot_stages(stages, NAMED, file)
    with Image.open(file) as image:
        assert image.width == round(130 * 3 * 1.6)
        assert image.height > 130 * 3 * 0.8


def test_groups_of_different_numbers_align() -> None:
    figure = grid_figure(
        [("many", torch.zeros(10, 2, 4).long()), ("few", torch.zeros(3, 2, 4).long())], NAMED, columns=4
    )
    shapes = [axes.images[0].get_array().shape for axes in figure.axes]  # type: ignore[union-attr]
    assert shapes[0] == shapes[1]


def test_groups_stand_in_rows() -> None:
    spec, x = DataSpec("maps", 3, (4, 8)), torch.zeros(4, 4, 8, dtype=torch.long)
    figure = grid_figure([(name, x) for name in "abc"], spec, columns=2, abreast=2)
    places = [axes.get_position() for axes in figure.axes]
    assert places[0].y0 == places[1].y0 > places[2].y1
    assert places[0].x0 == places[2].x0 < places[1].x0
    whole = grid_figure([(name, x) for name in "abc"], spec, columns=2)
    assert len({axes.get_position().y0 for axes in whole.axes}) == 1
