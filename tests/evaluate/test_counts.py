"""Count models against a dictionary-based reimplementation."""

import math
from collections import Counter

import numpy as np
import pytest
from conftest import SHARED_DATA
from contexts import probabilities

from unordinal.data import load_data
from unordinal.evaluate.counts import (
    CountModel,
    MapCountModel,
    baselines,
    map_baselines,
    trivial_bits,
    xz_bits_per_symbol,
)


def naive_bits(train: list[int], test: list[int], k: int, order: int) -> float:
    def p(context: list[int], symbol: int) -> float:
        shorter = p(context[1:], symbol) if context else 1 / k
        n = len(context)
        grams = Counter(tuple(train[i : i + n + 1]) for i in range(len(train) - n))
        total = sum(c for gram, c in grams.items() if gram[:-1] == tuple(context))
        return (grams[(*context, symbol)] + 4 * shorter) / (total + 4)

    bits = [-math.log2(p(test[max(0, i - order) : i], symbol)) for i, symbol in enumerate(test)]
    return sum(bits) / len(bits)


def test_probabilities_of_single_symbols_are_those_of_a_sequence_and_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.integers(0, 3, 200), rng.integers(0, 3, 30)
    model = CountModel(train, 3, 2)
    contexts = np.stack([test[:-2], test[1:-1]], axis=1)
    whole = 30 * model.bits_per_symbol(test) - 2 * model.bits_per_symbol(test[:2])
    assert -np.log2(probabilities(model, contexts, test[2:])).sum() == pytest.approx(whole)
    every = sum(probabilities(model, contexts, np.full(28, symbol)) for symbol in range(3))
    np.testing.assert_allclose(every, 1)


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_counts_are_the_recursion(order: int) -> None:
    rng = np.random.default_rng(0)
    train, test = rng.integers(0, 3, 200).astype(np.uint8), rng.integers(0, 3, 30).astype(np.uint8)
    got = CountModel(train, 3, order).bits_per_symbol(test)
    assert got == pytest.approx(naive_bits(train.tolist(), test.tolist(), 3, order), rel=1e-12)


def test_probabilities_sum_to_one() -> None:
    train = np.random.default_rng(0).integers(0, 4, 500).astype(np.uint8)
    model = CountModel(train, 4, 2)
    total = 0.0
    for symbol in range(4):
        row = np.array([1, 2, symbol], np.uint8)
        prefix = 2 * model.bits_per_symbol(row[:2])
        total += 2 ** -(3 * model.bits_per_symbol(row) - prefix)
    assert total == pytest.approx(1)


def test_repetition_compresses_and_noise_does_not() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, 20_000).astype(np.uint8)
    assert xz_bits_per_symbol(noise, noise) < 0.3
    assert 7.9 < xz_bits_per_symbol(noise, rng.integers(0, 256, 20_000).astype(np.uint8)) < 8.2


def test_baselines_name_every_order() -> None:
    symbols = np.random.default_rng(0).integers(0, 27, 4000).astype(np.uint8)
    assert list(baselines(symbols, symbols, 27)) == [*(f"order-{k} counts" for k in range(4)), "xz -9e"]


def test_a_map_model_knows_three_neighbours() -> None:
    """A pixel that is the exclusive or of its left, upper and upper left neighbours costs nothing given all three."""
    rng = np.random.default_rng(0)
    maps = rng.integers(0, 2, (200, 6, 6)).astype(np.uint8)
    for row in range(1, 6):
        for column in range(1, 6):
            maps[:, row, column] = maps[:, row, column - 1] ^ maps[:, row - 1, column] ^ maps[:, row - 1, column - 1]
    bits = MapCountModel(maps[:150], 2).bits_per_pixel(maps[150:])
    assert abs(bits - 11 / 36) < 0.03  # the first row and column are coin tosses


def test_baselines_of_maps_are_counts_and_xz() -> None:
    maps = np.random.default_rng(0).integers(0, 2, (20, 4, 6)).astype(np.uint8)
    table = map_baselines(maps, maps, 2)
    assert table["counts given left, above, above left"] == MapCountModel(maps, 2).bits_per_pixel(maps)
    assert table["xz -9e"] == xz_bits_per_symbol(maps, maps)


@pytest.mark.parametrize(("name", "expected"), [("landcover32x64", 0.464), ("camvid32x64", 0.421)])
def test_the_published_baselines_of_maps(name: str, expected: float) -> None:
    path = SHARED_DATA / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no {path} here")
    maps = np.load(path)
    assert MapCountModel(maps["train"], 8).bits_per_pixel(maps["test"]) == pytest.approx(expected, abs=0.002)


def test_trivial_models_suit_the_data() -> None:
    """Pairs of a text, neighbours of maps, and columns of rows, of which each knows a different thing."""
    rng = np.random.default_rng(0)
    text = np.arange(6000) % 3  # the next symbol follows from the one before
    name, bits = trivial_bits(load_data(text, length=20))
    assert name == "Counts of pairs"
    assert bits < 0.02
    columns = np.stack([np.zeros(900, int), rng.integers(0, 4, 900)], axis=1)
    name, bits = trivial_bits(load_data(columns))
    assert name == "Counts of independent columns"
    assert bits == pytest.approx(1.0, abs=0.05)  # nothing, and two bits
    maps = np.repeat(rng.integers(0, 2, (200, 1, 6)), 6, axis=1)
    name, bits = trivial_bits(load_data(maps))
    assert name == "Counts of neighbouring pixels"
    assert bits == pytest.approx(1 / 6, abs=0.05)  # a row is coin tosses, and the others repeat it
