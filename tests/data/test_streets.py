"""Streets: what a seed draws, and that training never runs out of them."""

from typing import Any

import numpy as np
import pytest
import torch

from unordinal.data import load_data
from unordinal.data.streets import CATEGORIES, ROAD, SKY, draw_street


def test_a_seed_draws_one_scene_and_another_seed_another() -> None:
    assert np.array_equal(draw_street(7), draw_street(7))
    assert not np.array_equal(draw_street(7), draw_street(8))


def test_scenes_are_streets() -> None:
    scenes = np.stack([draw_street(seed) for seed in range(100)])
    assert set(np.unique(scenes)) == set(range(len(CATEGORIES)))  # every category occurs
    assert (scenes[:, -1] == ROAD).mean() > 0.4  # the road is below,
    assert (scenes[:, -1] == SKY).mean() == 0
    assert (scenes[:, 0] == SKY).mean() > 0.15  # the sky above
    assert (scenes[:, 0] == ROAD).mean() == 0
    widths = (scenes == ROAD).sum(axis=2)  # in perspective: wider towards the camera
    assert widths[:, -1].mean() > 2 * widths[:, 20].mean()


@pytest.mark.parametrize("shape", [(32, 64), (16, 16), (48, 20), (2, 2)])
def test_any_even_size(shape: tuple[int, int]) -> None:
    assert draw_street(1, *shape).shape == shape


def test_splits_are_fixed_and_training_is_endless() -> None:
    data = load_data("streets")
    assert (len(data.train), len(data.val), len(data.test)) == (2500, 475, 500)
    assert data.spec.event_shape == (32, 64)
    first, seeds = data.train.crops(4, torch.Generator().manual_seed(0))
    again, _ = data.train.crops(4, torch.Generator().manual_seed(0))
    other, _ = data.train.crops(4, torch.Generator().manual_seed(1))
    assert torch.equal(first, again)  # which is what lets a run go on bit for bit
    assert not torch.equal(first, other)
    assert min(seeds) >= 1 << 42  # none of the fixed scenes
    assert torch.equal(data.test[3], torch.from_numpy(draw_street((1 << 41) + 3).astype(np.int64)))
    assert load_data("streets").spec.fingerprint == data.spec.fingerprint


def test_only_training_scenes_are_flipped() -> None:
    plain, mirrored = load_data("streets"), load_data("streets", flips=True)
    x, seeds = plain.train.crops(64, torch.Generator().manual_seed(0))
    y, same_seeds = mirrored.train.crops(64, torch.Generator().manual_seed(0))
    assert seeds == same_seeds
    is_same = (x == y).flatten(1).all(1)
    is_mirror = (x.flip(2) == y).flatten(1).all(1)
    assert bool((is_same | is_mirror).all())
    assert 16 < int(is_mirror.sum()) < 48
    assert not mirrored.val.flips
    assert not mirrored.test.flips


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("streets", {"map_height": 31}, "`map_height` must be even and at least 2, got 31"),
        ("streets", {"map_width": 0}, "`map_width` must be a whole number of at least 2, got 0"),
        ("streets", {"split": "1,1,1"}, "unknown setting 'split'"),
        ("streets", {"length": 4}, "unknown setting 'length'"),
        ("streets", {"num_classes": 9}, "unknown setting 'num_classes'"),
        ("docs", {"map_height": 32}, "unknown setting 'map_height'"),
        ("docs", {"flips": True}, "unknown setting 'flips'"),
    ],
)
def test_what_streets_do_not_have_is_refused(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_data(name, **settings)
