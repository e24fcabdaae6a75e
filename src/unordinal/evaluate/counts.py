"""Baselines that any trained model should beat: count models (n-grams) and the compressor xz."""

import lzma
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from unordinal.data.splits import Data

MOST_COUNTED = 1 << 22  # symbols of a text, or examples, that a trivial model counts
BACK_OFF = 4.0  # weight of the prediction from the shorter context, as a number of counts


class Counts:
    """How often each symbol followed each context.

    Args:
        grams: numbers whose last digit in base `num_classes` is a symbol, and whose other digits are its context.
        num_classes: the number of classes.
    """

    def __init__(self, grams: np.ndarray, num_classes: int):
        self.num_classes = num_classes
        self.seen, self.counts = np.unique(grams, return_counts=True)
        self.contexts, self.totals = np.unique(grams // num_classes, return_counts=True)

    def probabilities(self, grams: np.ndarray, shorter: np.ndarray) -> np.ndarray:
        """Return the probability of every symbol given its context, from those given a `shorter` context."""
        count = lookup(self.seen, self.counts, grams)
        total = lookup(self.contexts, self.totals, grams // self.num_classes)
        return (count + BACK_OFF * shorter) / (total + BACK_OFF)


class CountModel:
    """An n-gram model: predicts a symbol from the `order` symbols before it, by counts with recursive back-off.

    The probability given k symbols is p_k = (count + 4 p_{k-1}) / (n + 4), where n is the number of times that the
    context was seen and `count` how often the symbol followed it.

    Args:
        train: the symbols to count, (N,).
        num_classes: the number of classes.
        order: how many symbols a context has.

    >>> model = CountModel(np.array([0, 1] * 50, np.uint8), num_classes=2, order=1)
    >>> model.bits_per_symbol(np.array([0, 1] * 50, np.uint8)) < 0.1
    True
    """

    def __init__(self, train: np.ndarray, num_classes: int, order: int):
        if num_classes ** (order + 1) >= 2**62:
            raise ValueError(
                f"contexts of order {order} over {num_classes} classes are too many to count; use a smaller order"
            )
        self.num_classes, self.order = num_classes, order
        self.tables = [Counts(self.grams(train, k), num_classes) for k in range(order + 1)]

    def grams(self, symbols: np.ndarray, k: int) -> np.ndarray:
        """Encode each symbol and the k before it as one number in base `num_classes`, with the symbol as last digit."""
        codes = np.zeros(len(symbols) - k, np.int64)
        for place in range(k + 1):
            codes = codes * self.num_classes + symbols[place : len(symbols) - k + place]
        return codes

    def bits_per_symbol(self, symbols: np.ndarray) -> float:
        """Return the mean of -log2 p over a sequence of symbols; the first ones have shorter contexts."""
        p = np.full(len(symbols), 1 / self.num_classes)
        for k, counts in enumerate(self.tables):
            p[k:] = counts.probabilities(self.grams(symbols, k), p[k:])
        return float(-np.log2(p).mean())


def lookup(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the values of the keys `wanted`, where `keys` are sorted; 0 for keys that are absent."""
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


class MapCountModel:
    """Predicts a pixel of a map from its left, upper and upper left neighbours, by counts with recursive back-off.

    Args:
        train: the maps to count, (N, H, W).
        num_classes: the number of classes.

    >>> stripes = np.arange(8, dtype=np.uint8).reshape(1, 1, 8).repeat(4, 1).repeat(20, 0) % 2
    >>> MapCountModel(stripes, num_classes=2).bits_per_pixel(stripes) < 0.1
    True
    """

    ORDERS = 4  # contexts: no neighbour, left, left and upper, all three

    def __init__(self, train: np.ndarray, num_classes: int):
        self.num_classes = num_classes
        self.tables = [Counts(self.grams(train, order), num_classes) for order in range(self.ORDERS)]

    def grams(self, maps: np.ndarray, order: int) -> np.ndarray:
        """Encode every pixel and its first `order` neighbours as one number; outside of the map is an extra class."""
        padded = np.pad(maps.astype(np.int64), ((0, 0), (1, 0), (1, 0)), constant_values=self.num_classes)
        neighbours = (padded[:, 1:, :-1], padded[:, :-1, 1:], padded[:, :-1, :-1])
        codes = np.zeros(maps.shape, np.int64)
        for values in neighbours[:order]:
            codes = codes * (self.num_classes + 1) + values
        return codes * self.num_classes + maps

    def bits_per_pixel(self, maps: np.ndarray) -> float:
        """Return the mean of -log2 p over all pixels of maps (N, H, W)."""
        p = np.full(maps.shape, 1 / self.num_classes)
        for order, counts in enumerate(self.tables):
            p = counts.probabilities(self.grams(maps, order), p)
        return float(-np.log2(p).mean())


def xz_bits_per_symbol(train: np.ndarray, symbols: np.ndarray) -> float:
    """Return by how many bits per symbol `symbols` increase the compressed size (xz -9e) when appended to `train`."""
    preset = 9 | lzma.PRESET_EXTREME
    alone = len(lzma.compress(train.tobytes(), preset=preset))
    both = len(lzma.compress(train.tobytes() + symbols.tobytes(), preset=preset))
    return 8 * (both - alone) / symbols.size


def baselines(train: np.ndarray, symbols: np.ndarray, num_classes: int, orders: int = 4) -> dict[str, float]:
    """Return the bits per symbol of count models of orders 0, ..., `orders` - 1 and of xz, fitted on `train`."""
    highest = min(orders, math.floor(62 / math.log2(num_classes)))
    table = {f"order-{k} counts": CountModel(train, num_classes, k).bits_per_symbol(symbols) for k in range(highest)}
    return {**table, "xz -9e": xz_bits_per_symbol(train, symbols)}


def trivial_bits(data: "Data") -> tuple[str, float]:
    """Return a trivial model of the training data, in words, and its bits per position of the validation split.

    Where positions hold tokens, they are bits per character.

    Sequences are modelled by pairs of neighbours, maps by the pixels to the left and above, and rows of an array by
    independent columns. Classes that were not seen count as if they had been, a little.
    """
    k, train, val = data.spec.num_classes, data.train.symbols[:MOST_COUNTED], data.val.symbols[:MOST_COUNTED]
    if data.spec.is_map:
        return "Counts of neighbouring pixels", MapCountModel(np.asarray(train), k).bits_per_pixel(np.asarray(val))
    widths = np.append(np.ones(k) if data.val.widths is None else data.val.widths, 0)  # characters of a class
    if data.spec.ends:  # every example, its end and nothing after that, one after another
        kept = [part[np.diff(part >= k, axis=1, prepend=False) | (part < k)] for part in (train, val)]
        bits = CountModel(kept[0], k + 1, 1).bits_per_symbol(kept[1])
        return "Counts of pairs", bits * len(kept[1]) / max(1.0, float(widths[kept[1]].sum()))
    if data.train.length is not None:
        bits = CountModel(np.asarray(train), k, 1).bits_per_symbol(np.asarray(val))
        return "Counts of pairs", bits / float(widths[np.asarray(val)].mean())
    sizes = data.spec.columns or (k,) * train.shape[1]
    columns = [CountModel(np.asarray(column), size, 0) for column, size in zip(train.T, sizes, strict=True)]
    each = [model.bits_per_symbol(np.asarray(column)) for model, column in zip(columns, val.T, strict=True)]
    return "Counts of independent columns", float(np.mean(each))


def map_baselines(train: np.ndarray, maps: np.ndarray, num_classes: int) -> dict[str, float]:
    """Return the bits per pixel of the count model with three neighbours and of xz, fitted on `train` (N, H, W)."""
    counted = MapCountModel(train, num_classes).bits_per_pixel(maps)
    return {"counts given left, above, above left": counted, "xz -9e": xz_bits_per_symbol(train, maps)}
