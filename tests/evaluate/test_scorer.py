"""Scores of single examples under a bound: drawn until their ranking is reliable, with correct standard errors."""

import math

import numpy as np
import pytest
import torch
from contracts import TableNet, all_events, analytic_elbo
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.evaluate.likelihood import score_split
from unordinal.evaluate.scorer import MOST_DRAWS
from unordinal.models.diffusion import Diffusion
from unordinal.nets.transformer import TimeTransformer

K, L, T = 3, 2, 4


def tiny_model() -> Diffusion:
    return Diffusion(TableNet(K, L, T), noise=UniformNoise(K, cosine_schedule(T)), event_shape=(L,))


@torch.no_grad()
def exact_bits(model: Diffusion) -> Tensor:
    """The bound of every x by enumeration, in bits per dimension."""
    return -analytic_elbo(model) / (L * math.log(2))


def test_each_example_comes_with_its_bound_and_its_error() -> None:
    model, split = tiny_model(), Split(all_events(K, (L,)).numpy().astype(np.uint8))
    score = score_split(model, split, per_example=True)
    assert score.per_example is not None
    assert score.per_example_error is not None
    off = (torch.tensor(score.per_example) - exact_bits(model)).abs() / torch.tensor(score.per_example_error)
    assert float(off.max()) < 6  # an error from a few rounds is itself uncertain
    assert score.bits_per_dim == pytest.approx(sum(score.per_example) / 9)


def test_a_bound_holds_no_single_examples_unless_asked() -> None:
    split = Split(all_events(K, (L,)).numpy().astype(np.uint8))
    score = score_split(tiny_model(), split)
    assert score.per_example is None
    assert score.per_example_error is None
    fixed = score_split(tiny_model(), split, per_example=True, repeats=32)
    assert "32 draws per example" in fixed.method
    most = score_split(tiny_model(), Split(np.zeros((5, L), np.uint8)), per_example=True)
    assert f"{MOST_DRAWS} draws per example" in most.method  # equal examples can never be told apart


def test_every_time_is_computed_where_that_is_asked_for() -> None:
    """Then a single example's number is its own, and needs no more draws to mean something."""
    split = Split(all_events(K, (L,)).numpy().astype(np.uint8))
    score = score_split(tiny_model(), split, times="all", per_example=True, repeats=400)
    assert "all 4 times" in score.method
    assert score.per_example is not None
    torch.testing.assert_close(torch.tensor(score.per_example), exact_bits(tiny_model()).float(), rtol=0.1, atol=0.1)


def test_planted_outliers_come_out_on_top_with_default_settings() -> None:
    """Sequences of a repeated letter, three of them broken, under a diffusion that was trained for a moment."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    clean = np.repeat(rng.integers(0, 4, (400, 6)), 4, axis=1)  # each letter four times
    net = TimeTransformer(4, width=32, num_blocks=1, global_heads=2, conv=5)
    model = Diffusion(net, noise=UniformNoise(4, cosine_schedule(100)), event_shape=(24,), times="stratified")
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    for _ in range(150):
        x = torch.from_numpy(clean[rng.integers(0, 400, 64)])
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    test = np.repeat(rng.integers(0, 4, (60, 6)), 4, axis=1)
    planted = [7, 23, 41]
    for row in planted:
        test[row] = rng.integers(0, 4, 24)
    score = score_split(model, Split(test.astype(np.uint8)), per_example=True)
    assert score.per_example is not None
    assert sorted(np.argsort(score.per_example)[-3:].tolist()) == planted
