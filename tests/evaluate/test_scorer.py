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
from unordinal.evaluate.likelihood import Evaluate, score_split
from unordinal.evaluate.scorer import LEAST_ROUNDS, MOST_DRAWS, ROUND, order_of
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
    score = score_split(model, split, Evaluate(per_example=True))
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
    fixed = score_split(tiny_model(), split, Evaluate(per_example=True, repeats=32))
    assert "32 draws per example" in fixed.method
    few = score_split(tiny_model(), split, Evaluate(per_example=True, repeats=2))
    assert f"{LEAST_ROUNDS * ROUND} draws per example" in few.method  # fewer would not tell the error
    assert few.per_example_error is not None
    most = score_split(tiny_model(), Split(np.zeros((5, L), np.uint8)), Evaluate(per_example=True))
    assert f"{MOST_DRAWS} draws per example" in most.method  # equal examples can never be told apart


def test_every_time_is_computed_where_that_is_asked_for() -> None:
    """Then a single example's number is its own, and needs no more draws to mean something."""
    split = Split(all_events(K, (L,)).numpy().astype(np.uint8))
    score = score_split(tiny_model(), split, Evaluate(times="all", per_example=True, repeats=400))
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
    score = score_split(model, Split(test.astype(np.uint8)), Evaluate(per_example=True))
    assert score.per_example is not None
    assert sorted(np.argsort(score.per_example)[-3:].tolist()) == planted


def test_the_errors_of_single_examples_are_honest() -> None:
    """Differences from the bound by enumeration are about as large as the errors say, with the fewest draws too."""
    model, split = tiny_model(), Split(all_events(K, (L,)).numpy().astype(np.uint8))
    exact, off = exact_bits(model), []
    for seed in range(40):
        score = score_split(model, split, Evaluate(per_example=True, repeats=16, seed=seed))
        assert score.per_example is not None
        assert score.per_example_error is not None
        off.append((torch.tensor(score.per_example) - exact) / torch.tensor(score.per_example_error))
    ratios = torch.stack(off)
    assert float(ratios.abs().median()) < 1.2  # 0.77 for Student's t with three degrees of freedom
    assert float(ratios.abs().median()) > 0.4


def test_the_batch_size_changes_the_draws_of_no_time_and_the_score_by_noise_alone() -> None:
    split, model = Split(np.tile(all_events(K, (L,)).numpy().astype(np.uint8), (40, 1))), tiny_model()
    scores = [score_split(model, split, Evaluate(repeats=4, batch_size=size)) for size in (7, 64)]
    error = sum((s.standard_error or 0) ** 2 for s in scores) ** 0.5
    assert abs(scores[0].bits_per_dim - scores[1].bits_per_dim) < 4 * error


def test_orders_by_name() -> None:
    assert order_of("left-to-right", 4, 0).tolist() == [0, 1, 2, 3]
    assert sorted(order_of("random", 20, 0).tolist()) == list(range(20))
    assert order_of("random", 20, 1).tolist() == order_of("random", 20, 1).tolist()
    assert order_of("random", 20, 0).tolist() != order_of("random", 20, 1).tolist()
    with pytest.raises(ValueError, match="unknown order 'left'"):
        order_of("left", 3, 0)
