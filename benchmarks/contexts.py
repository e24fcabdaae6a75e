"""Probabilities of single symbols under counts, each after a context of its own."""

import numpy as np

from unordinal.evaluate.counts import BACK_OFF, CountModel, lookup


def probabilities(model: CountModel, contexts: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Return the probability of each symbol after its own context: (N, order) and (N,) -> (N,)."""
    p = np.full(len(symbols), 1 / model.num_classes)
    for k, (seen, counts, known, totals) in enumerate(model.tables):
        codes = np.zeros(len(symbols), np.int64)
        for place in range(model.order - k, model.order):
            codes = codes * model.num_classes + contexts[:, place]
        count = lookup(seen, counts, codes * model.num_classes + symbols)
        p = (count + BACK_OFF * p) / (lookup(known, totals, codes) + BACK_OFF)
    return p
