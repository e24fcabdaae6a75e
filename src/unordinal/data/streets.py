"""Maps of random street scenes in perspective, each generated from a seed, so that nothing needs to be downloaded."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from unordinal.data.source import MapSettings
from unordinal.data.spec import DataSpec
from unordinal.data.splits import Data, DrawnSplit, cut
from unordinal.data.storage import stored_symbols
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

CATEGORIES = (
    ("road", "#804080"),
    ("pavement", "#f423e8"),
    ("buildings", "#464646"),
    ("sky", "#4682b4"),
    ("trees", "#6b8e23"),
    ("poles", "#dcdc00"),
    ("people", "#dc143c"),
    ("cars", "#00008e"),
)
ROAD, PAVEMENT, BUILDING, SKY, TREE, POLE, PERSON, CAR = range(len(CATEGORIES))
SIZES = (2500, 475, 500)  # train (the number of scenes that count as one epoch), val, test
FIRST_SEEDS = (0, 1 << 40, 1 << 41)  # of the fixed scenes of the splits; random training batches have larger seeds
DRAWING = 1  # increase this when the scene of a seed changes
CAMERA = 1.5  # height of the camera above the road in metres
FARTHEST = 60.0  # metres; houses farther away are not drawn


def draw_street(seed: int, height: int = 32, width: int = 64) -> np.ndarray:
    """Return the scene of a seed, the class of every pixel: (height, width) uint8.

    >>> draw_street(3).shape
    (32, 64)
    """
    rng = np.random.default_rng(seed)
    focal = 0.5 * width * rng.uniform(0.8, 1.1)
    horizon = height * rng.uniform(0.35, 0.55)
    centre = width * rng.uniform(0.35, 0.65)
    rows, columns = np.arange(height)[:, None] + 0.5, np.arange(width) + 0.5
    with np.errstate(divide="ignore"):
        depth = np.where(rows > horizon, focal * CAMERA / np.maximum(rows - horizon, 1e-9), np.inf)
    across = np.where(np.isfinite(depth), (columns - centre) * np.minimum(depth, 1e6) / focal, 0.0)
    left, right = -rng.uniform(2.0, 5.0), rng.uniform(2.0, 5.0)  # kerbs
    scene = np.where((across > left) & (across < right), ROAD, PAVEMENT).astype(np.uint8)
    scene = np.where(rows > horizon, scene, SKY).astype(np.uint8)
    walls = (left - rng.uniform(1.5, 4.0), right + rng.uniform(1.5, 4.0))
    for wall in walls:
        draw_wall(scene, rng, wall, focal=focal, horizon=horizon, centre=centre)
    things = []  # depth, class, horizontal position, width, bottom, top; all but the class in metres
    for _ in range(rng.poisson(2.5)):
        side = rng.integers(2)
        across_at = (left, right)[side] + (-1, 1)[side] * rng.uniform(0.3, 1.2)
        things.append((draw_depth(rng), POLE, across_at, 0.25, 0.0, rng.uniform(3, 6)))
    for _ in range(rng.poisson(2.0)):
        side = rng.integers(2)
        across_at = (left, right)[side] + (-1, 1)[side] * rng.uniform(0.5, 2.5)
        things.append((draw_depth(rng), TREE, across_at, rng.uniform(2, 4.5), rng.uniform(1.5, 2.5), rng.uniform(4, 8)))
    for _ in range(rng.poisson(2.0)):
        side = rng.integers(2)
        across_at = (left, right)[side] + (-1, 1)[side] * rng.uniform(-0.5, 1.5)
        things.append((draw_depth(rng), PERSON, across_at, 0.7, 0.0, rng.uniform(1.5, 1.9)))
    for _ in range(rng.poisson(2.5)):
        things.append((draw_depth(rng), CAR, rng.uniform(left + 0.5, right - 0.5), 1.9, 0.0, rng.uniform(1.4, 2.2)))
    for z, category, across_at, wide, low, high in sorted(things, reverse=True):
        scale = focal / z
        middle = centre + across_at * scale
        top, bottom = horizon + (CAMERA - high) * scale, horizon + (CAMERA - low) * scale
        inside = (np.abs(columns - middle) <= max(wide * scale, 1.0) / 2) & (rows >= top) & (rows <= bottom)
        if category == TREE:  # a round crown on a trunk
            round_ = ((columns - middle) / (wide / 2)) ** 2 + ((rows - (top + bottom) / 2) / ((high - low) / 2)) ** 2
            trunk = (np.abs(columns - middle) <= max(0.3 * scale, 1.0) / 2) & (rows >= bottom)
            inside = (round_ <= scale**2) | (trunk & (rows <= horizon + CAMERA * scale))
        scene[inside] = category
    return scene


def draw_depth(rng: np.random.Generator) -> float:
    """Draw the distance of an object in metres; its logarithm is uniform, so that near and far are equally frequent."""
    return float(np.exp(rng.uniform(np.log(4.0), np.log(FARTHEST / 2))))


def draw_wall(
    scene: np.ndarray, rng: np.random.Generator, wall: float, *, focal: float, horizon: float, centre: float
) -> None:
    """Draw a row of houses of random heights, with gaps, in the vertical plane at `wall` metres to the side."""
    height, width = scene.shape
    columns, rows = np.arange(width) + 0.5, np.arange(height)[:, None] + 0.5
    offset = columns - centre
    is_side = (offset * wall) > 0
    depth = np.where(is_side, focal * wall / np.where(is_side, offset, 1.0), np.inf)
    ends = np.cumsum(rng.uniform(4, 14, size=16))
    tall = rng.uniform(3, 14, size=17)
    tall[rng.random(17) < 0.15] = 0.0  # a gap
    house = np.searchsorted(ends, np.minimum(depth, 1e6))
    far = depth > FARTHEST
    high = np.where(far, 0.0, tall[np.minimum(house, 16)])
    scale = focal / np.maximum(np.minimum(depth, 1e6), 1e-6)
    top, bottom = horizon - (high - CAMERA) * scale, horizon + CAMERA * scale
    scene[(rows >= top) & (rows <= bottom) & (is_side & (high > 0))] = BUILDING


@dataclass(frozen=True)
class StreetsSource(MapSettings):
    """Fixed scenes for validation and test, and new scenes for every training batch."""

    key: ClassVar[str] = "streets"
    usage: ClassVar[str] = "streets"
    description: ClassVar[str] = (
        "random street scenes of 8 categories, new ones for every training batch (no download; any even size)"
    )

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        height, width = self.map_height, self.map_width
        draw = partial(draw_street, height=height, width=width)

        def blocks() -> Iterator[np.ndarray]:
            with progress("Drawing streets", sum(SIZES)) as advance:
                for size, first in zip(SIZES, FIRST_SEEDS, strict=True):
                    for index in range(size):
                        yield draw(first + index)
                        advance(1)

        key = {"streets": DRAWING, "height": height, "width": width}
        stored, described = stored_symbols(key, blocks, dict)
        _, val, test = cut(stored.reshape(-1, height, width), SIZES, None)
        train = DrawnSplit(stored.reshape(-1, height, width)[: SIZES[0]], draw, flips=self.flips)
        spec = DataSpec(self.name, len(CATEGORIES), (height, width), None, described["sha256"], SIZES, CATEGORIES)
        return Data(spec, train, val, test)
