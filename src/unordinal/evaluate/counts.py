"""Count models and xz: what any trained model should beat."""

import lzma
import math

import numpy as np

BACK_OFF = 4.0  # weight of the shorter context's prediction, in counts


class CountModel:
    """Symbols given the `order` before them, by counts with recursive back-off: p_k = (count + 4 p_{k-1}) / (n + 4).

    >>> model = CountModel(np.array([0, 1] * 50, np.uint8), num_classes=2, order=1)
    >>> model.bits_per_symbol(np.array([0, 1] * 50, np.uint8)) < 0.1
    True
    """

    def __init__(self, train: np.ndarray, num_classes: int, order: int):
        if num_classes ** (order + 1) >= 2**62:
            raise ValueError(f"order {order} over {num_classes} classes is too much to count")
        self.num_classes, self.order = num_classes, order
        self.tables = []
        for k in range(order + 1):
            grams = self.grams(train, k)
            seen, counts = np.unique(grams, return_counts=True)
            contexts, totals = np.unique(grams // num_classes, return_counts=True)
            self.tables.append((seen, counts, contexts, totals))

    def grams(self, symbols: np.ndarray, k: int) -> np.ndarray:
        """Each symbol that has k before it, and those k, as one number with the symbol in the last digit."""
        codes = np.zeros(len(symbols) - k, np.int64)
        for place in range(k + 1):
            codes = codes * self.num_classes + symbols[place : len(symbols) - k + place]
        return codes

    def bits_per_symbol(self, symbols: np.ndarray) -> float:
        """Mean -log2 p over a row of symbols, the first ones with shorter contexts."""
        p = np.full(len(symbols), 1 / self.num_classes)
        for k, (seen, counts, contexts, totals) in enumerate(self.tables):
            grams = self.grams(symbols, k)
            count, total = looked_up(seen, counts, grams), looked_up(contexts, totals, grams // self.num_classes)
            p[k:] = (count + BACK_OFF * p[k:]) / (total + BACK_OFF)
        return float(-np.log2(p).mean())


def looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """values of `wanted` among sorted `keys`, 0 where it is absent."""
    place = np.searchsorted(keys, wanted).clip(max=len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


class MapCountModel:
    """A pixel given those to its left, above, and above to the left, by counts with the same back-off.

    >>> stripes = np.arange(8, dtype=np.uint8).reshape(1, 1, 8).repeat(4, 1).repeat(20, 0) % 2
    >>> MapCountModel(stripes, num_classes=2).bits_per_pixel(stripes) < 0.1
    True
    """

    ORDERS = 4  # contexts: none, left, left and above, all three

    def __init__(self, train: np.ndarray, num_classes: int):
        self.num_classes = num_classes
        self.tables = []
        for order in range(self.ORDERS):
            contexts = self.contexts(train, order)
            seen, counts = np.unique(contexts * num_classes + train, return_counts=True)
            places, totals = np.unique(contexts, return_counts=True)
            self.tables.append((seen, counts, places, totals))

    def contexts(self, maps: np.ndarray, order: int) -> np.ndarray:
        """The first `order` neighbours of every pixel as one number; outside of the map is a class of its own."""
        padded = np.pad(maps.astype(np.int64), ((0, 0), (1, 0), (1, 0)), constant_values=self.num_classes)
        neighbours = (padded[:, 1:, :-1], padded[:, :-1, 1:], padded[:, :-1, :-1])
        codes = np.zeros(maps.shape, np.int64)
        for values in neighbours[:order]:
            codes = codes * (self.num_classes + 1) + values
        return codes

    def bits_per_pixel(self, maps: np.ndarray) -> float:
        p = np.full(maps.shape, 1 / self.num_classes)
        for order, (seen, counts, places, totals) in enumerate(self.tables):
            contexts = self.contexts(maps, order)
            count = looked_up(seen, counts, contexts * self.num_classes + maps)
            p = (count + BACK_OFF * p) / (looked_up(places, totals, contexts) + BACK_OFF)
        return float(-np.log2(p).mean())


def xz_bits_per_symbol(train: np.ndarray, symbols: np.ndarray) -> float:
    """What `symbols` add to the size of xz -9e of the training text before them."""
    preset = 9 | lzma.PRESET_EXTREME
    alone = len(lzma.compress(train.tobytes(), preset=preset))
    both = len(lzma.compress(train.tobytes() + symbols.tobytes(), preset=preset))
    return 8 * (both - alone) / symbols.size


def baselines(train: np.ndarray, symbols: np.ndarray, num_classes: int, orders: int = 4) -> dict[str, float]:
    """Bits per symbol of the count models of orders 0.. and of xz, fitted on `train`."""
    highest = min(orders, math.floor(62 / math.log2(num_classes)))
    table = {f"order-{k} counts": CountModel(train, num_classes, k).bits_per_symbol(symbols) for k in range(highest)}
    return {**table, "xz -9e": xz_bits_per_symbol(train, symbols)}


def map_baselines(train: np.ndarray, maps: np.ndarray, num_classes: int) -> dict[str, float]:
    """Bits per pixel of counts given three neighbours, and of xz, fitted on `train` (N, H, W)."""
    counted = MapCountModel(train, num_classes).bits_per_pixel(maps)
    return {"counts given left, above, above left": counted, "xz -9e": xz_bits_per_symbol(train, maps)}
