"""Scores on data with exactly known probabilities: a sum over every possible x, weighted by its probability."""

import math
import time

import numpy as np
import torch

from unordinal.evaluate.likelihood import EXACT, Evaluate, check_exactness, kind_of
from unordinal.evaluate.score import Score
from unordinal.evaluate.scorer import SYMBOLS_PER_CALL
from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import bound, importance_bound
from unordinal.parallel.randomness import generator_of

DRAWS = 16  # default number of draws of the ELBO per x


def entropy(pmf: np.ndarray) -> float:
    """Return the entropy of a distribution in nats."""
    positive = pmf[pmf > 0]
    return float(-(positive * np.log(positive)).sum())


def score_pmf(model: CategoricalModel, pmf: np.ndarray, asked: Evaluate | None = None) -> Score:
    """Return the cross-entropy between exact probabilities and a model, from its bound for every possible x.

    The only randomness is that of the draws which estimate the bound, so the standard error is theirs alone.

    Args:
        model: the model to score.
        pmf: the probability of every x, shape (K,) * D.
        asked: the bound, its draws (`repeats`, by default 16, or `k`) and their seed.

    Returns:
        The score, whose `per_example` are the bits per dimension of every x.
    """
    asked = asked or Evaluate(split="exact")
    check_exactness(model, asked)
    is_iwbo = asked.bound == "iwbo"
    draws = asked.k if is_iwbo else 1 if model.is_exact else asked.repeats or DRAWS
    cells = torch.from_numpy(np.stack(np.unravel_index(np.arange(pmf.size), pmf.shape), axis=1))  # (K^D, D)
    weights = torch.from_numpy(pmf.reshape(-1)).double()
    device, began, rows = device_of(model), time.monotonic(), SYMBOLS_PER_CALL // cells.shape[1]
    generator = generator_of(asked.seed, device=device)
    values, variances = [], []
    with asked.progress("Scoring", len(cells) * draws) as advance:
        for part in cells.split(max(1, rows // draws)):
            x = part.to(device)
            if is_iwbo:
                value, variance = importance_bound(model, x, draws, rows=rows, generator=generator, advance=advance)
            else:
                each = torch.stack([-bound(model, x, generator=generator, advance=advance)[0] for _ in range(draws)])
                value, variance = -each.mean(dim=0), each.var(dim=0, correction=min(1, draws - 1)) / draws
            values.append(value)
            variances.append(variance)
    to_bits = 1 / (math.log(2) * cells.shape[1])
    bits = -torch.cat(values) * to_bits
    error = float((weights.square() * torch.cat(variances)).sum().sqrt()) * to_bits
    what = "importance weights" if is_iwbo else "draws"
    return Score(
        bits_per_dim=float((weights * bits).sum()),
        standard_error=0.0 if model.is_exact else error if draws > 1 else None,  # one draw has no variance
        kind=kind_of(model, asked),
        split=EXACT,
        num_examples=len(cells),
        seconds=time.monotonic() - began,
        method=f"{'' if model.is_exact else f'{draws} {what} for '}each of all {len(cells)} x, weighted by their "
        "exact probabilities",
        per_example=tuple(bits.tolist()),
        dimensions=cells.shape[1],
    )
