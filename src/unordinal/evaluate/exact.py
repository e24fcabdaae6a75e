"""Scores on data with exactly known probabilities: a sum over every possible x, weighted by its probability."""

import math
import time

import numpy as np
import torch

from unordinal.evaluate.likelihood import Bound, Score, check_bound, check_exactness, kind_of
from unordinal.evaluate.scorer import SYMBOLS_PER_CALL, iwbo
from unordinal.model import CategoricalModel, device_of, evaluating
from unordinal.progress import Progress, silent

EXACT = "exact"  # the name of the split in such a score
DRAWS = 16  # default number of draws of the ELBO per x


def entropy(pmf: np.ndarray) -> float:
    """Return the entropy of a distribution in nats."""
    positive = pmf[pmf > 0]
    return float(-(positive * np.log(positive)).sum())


@torch.no_grad()
def score_pmf(
    model: CategoricalModel,
    pmf: np.ndarray,
    *,
    bound: Bound = "elbo",
    k: int = 1000,
    repeats: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Score:
    """Return the cross-entropy between exact probabilities and a model, from its bound for every possible x.

    The only randomness is that of the draws which estimate the bound, so the standard error is theirs alone.

    Args:
        model: the model to score.
        pmf: the probability of every x, shape (K,) * D.
        bound: elbo, or iwbo for the importance-weighted bound.
        k: how many importance weights per x (iwbo only).
        repeats: how many draws of the ELBO per x; default 16, or 1 if the likelihood is exact.
        seed: the seed of the random numbers.
        progress: receives the progress of scoring.

    Returns:
        The score, whose `per_example` are the bits per dimension of every x.
    """
    check_bound(bound, k)
    check_exactness(model, bound, repeats or 1)
    if repeats is None:
        repeats = 1 if model.is_exact else DRAWS
    if repeats < 1:
        raise ValueError(f"`repeats` must be at least 1, got {repeats}")
    cells = torch.from_numpy(np.stack(np.unravel_index(np.arange(pmf.size), pmf.shape), axis=1))  # (K^D, D)
    weights = torch.from_numpy(pmf.reshape(-1)).double()
    device = device_of(model)
    began = time.monotonic()
    draws = k if bound == "iwbo" else repeats
    rows = SYMBOLS_PER_CALL // cells.shape[1]
    values, variances = [], []
    with (
        evaluating(model),
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        progress("Scoring", len(cells) * draws) as advance,
    ):
        torch.manual_seed(seed)
        for part in cells.split(max(1, rows // draws)):
            x = part.to(device)
            if bound == "iwbo":
                value, variance = iwbo(model, x, k, rows, advance)
            else:
                each = torch.stack([model.elbo(x).double().cpu() for _ in range(draws)])
                value, variance = each.mean(dim=0), each.var(dim=0, correction=min(1, draws - 1)) / draws
                advance(draws * len(x))
            values.append(value)
            variances.append(variance)
    to_bits = 1 / (math.log(2) * cells.shape[1])
    bits = -torch.cat(values) * to_bits
    error = float((weights.square() * torch.cat(variances)).sum().sqrt()) * to_bits
    what = "importance weights" if bound == "iwbo" else "draws"
    return Score(
        bits_per_dim=float((weights * bits).sum()),
        standard_error=0.0 if model.is_exact else error if draws > 1 else None,  # one draw has no variance
        kind=kind_of(model, bound, k),
        split=EXACT,
        num_examples=len(cells),
        seconds=time.monotonic() - began,
        method=f"{'' if model.is_exact else f'{draws} {what} for '}each of all {len(cells)} x, weighted by their "
        "exact probabilities",
        per_example=tuple(bits.tolist()),
        dimensions=cells.shape[1],
    )
