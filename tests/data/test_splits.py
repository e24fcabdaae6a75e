"""Splits: fixed chunks without overlap, crops from anywhere, flips, and splits that are refused."""

import numpy as np
import pytest
import torch

from unordinal.data import load_data
from unordinal.data.splits import DrawnSplit, Split, cut, split_sizes


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("0.9,0.1", "expected a split TRAIN,VAL,TEST"),
        ("a,b,c", "expected a split"),
        ("0.9,0.2,0.1", "sums to 1.2"),
        ("900,50,51", "needs 1001 symbols, but the data have 1000"),
        ("-1,500,501", "expected a split"),
        ("nan,0.5,0.5", "expected a split"),
    ],
)
def test_bad_splits_are_refused(split: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        split_sizes(split, 1000, "symbols")


def test_chunks_do_not_overlap_and_crops_start_anywhere() -> None:
    stream = np.arange(103, dtype=np.uint8)
    split = Split(stream, length=10)
    assert len(split) == 10
    assert split.num_unscored == 3
    assert split.examples(np.arange(10)).flatten().tolist() == list(range(100))
    generator = torch.Generator().manual_seed(0)
    x, starts = split.crops(2000, generator)
    assert set(starts) == set(range(94))
    assert (x == torch.tensor(starts).unsqueeze(1) + torch.arange(10)).all()
    with pytest.raises(IndexError):
        split.examples(np.array([10]))


def test_fractions_and_counts_cut_the_data_one_part_after_another() -> None:
    for split, expected in (
        ("0.8,0.1,0.1", (801, 100, 100)),
        ("800,100,100", (800, 100, 100)),
        ("0,0,1", (0, 0, 1001)),
        ("0,1,0", (0, 1001, 0)),
        ("1e-3,0.5,0.499", (1, 500, 500)),
    ):
        assert split_sizes(split, 1001, "symbols") == expected
    train, val, test = cut(np.arange(100, dtype=np.uint8), (50, 30, 10), 10)
    assert train.examples(np.arange(5)).flatten().tolist() == list(range(50))
    assert val.examples(np.arange(3)).flatten().tolist() == list(range(50, 80))
    assert test[0].tolist() == list(range(80, 90))


def test_random_examples_are_drawn_uniformly_and_flipped_half_of_the_time() -> None:
    x = np.arange(20, dtype=np.uint8).reshape(10, 1, 2)
    train, val, test = cut(x, (10, 0, 0), None, flips=True)
    assert (train.flips, val.flips, test.flips) == (True, False, False)
    drawn, starts = train.crops(20_000, torch.Generator().manual_seed(0))
    plain = torch.from_numpy(x[starts]).long()
    is_flipped = (drawn == plain.flip(2)).flatten(1).all(1)
    assert bool((is_flipped | (drawn == plain).flatten(1).all(1)).all())
    assert abs(float(is_flipped.double().mean()) - 0.5) < 4.5 * 0.5 / 20_000**0.5
    counts = np.bincount(starts, minlength=10)
    assert abs(counts - 2000).max() < 4.5 * (20_000 * 0.1 * 0.9) ** 0.5


def test_drawn_examples_are_those_of_their_seeds() -> None:
    def draw(seed: int) -> np.ndarray:
        return np.array([[seed % 7, seed % 11]], np.uint8)

    split = DrawnSplit(np.stack([draw(seed) for seed in range(4)]), draw)
    x, seeds = split.crops(50, torch.Generator().manual_seed(0))
    assert x[:, 0].tolist() == [[seed % 7, seed % 11] for seed in seeds]
    assert min(seeds) >= DrawnSplit.FIRST_SEED
    assert len(set(seeds)) == 50
    assert split[3].tolist() == [[3, 3]]  # the fixed ones stay


def test_splits_are_found_by_name_and_must_hold_an_example() -> None:
    data = load_data(np.arange(600).reshape(100, 6) % 3)
    assert data.split("val") is data.val
    data.require("train", "val", "test")
    with pytest.raises(ValueError, match="unknown split 'tset'"):
        data.split("tset")
    stream = type(data)(
        data.spec, data.train, Split(np.zeros(7, np.uint8), length=8), Split(np.zeros((0, 6), np.uint8))
    )
    with pytest.raises(ValueError, match="the val split has 7 symbols, shorter than one sequence of 8"):
        stream.require("train", "val")
    with pytest.raises(ValueError, match="the test split has no examples"):
        stream.require("test")
    with pytest.raises(ValueError, match="one long sequence of symbols needs a `length`"):
        Split(np.zeros(7, np.uint8))
