"""Probabilities of single symbols under counts, each after a context of its own."""

import numpy as np

from unordinal.evaluate.counts import CountModel


def probabilities(model: CountModel, contexts: np.ndarray, symbols: np.ndarray) -> np.ndarray:
    """Return the probability of each symbol after its own context: (N, order) and (N,) -> (N,)."""
    p = np.full(len(symbols), 1 / model.num_classes)
    for k, counts in enumerate(model.tables):
        codes = np.zeros(len(symbols), np.int64)
        for place in range(model.order - k, model.order):
            codes = codes * model.num_classes + contexts[:, place]
        p = counts.probabilities(codes * model.num_classes + symbols, p)
    return p
