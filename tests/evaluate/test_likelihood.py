"""Scores of a split against the bound taken by enumeration."""

import math

import numpy as np
import pytest
import torch
from contracts import all_events
from models.test_diffusion import K, L, analytic_elbo, tiny_model

from unordinal.data.splits import Split
from unordinal.evaluate.likelihood import score_split, standard_error


def events(copies: int) -> Split:
    return Split(np.tile(all_events(K, (L,)).numpy().astype(np.uint8), (copies, 1)))


def exact_bits() -> float:
    with torch.no_grad():
        return float(-analytic_elbo(tiny_model()).mean() / (math.log(2) * L))


@pytest.mark.parametrize(("times", "repeats"), [("all", 1), ("all", 3), ("stratified", 1), ("stratified", 3)])
def test_scores_are_unbiased_and_their_error_honest(times: str, repeats: int) -> None:
    split, model = events(20), tiny_model()
    scores = [score_split(model, split, times=times, repeats=repeats, seed=seed) for seed in range(60)]  # type: ignore[arg-type]
    values = np.array([s.bits_per_dim for s in scores])
    spread = values.std(ddof=1)
    assert abs(values.mean() - exact_bits()) < 4.5 * spread / math.sqrt(60)
    claimed = np.mean([s.standard_error for s in scores if s.standard_error is not None])
    assert claimed > 0.8 * spread  # the split's own variation is in it too, so it may be larger, not smaller
    assert scores[0].kind == "elbo"
    assert ("all 4 times" in scores[0].method) == (times == "all")
    assert scores[0].num_examples == 20 * K**L


def test_more_repeats_lower_the_error() -> None:
    split, model = events(20), tiny_model()
    one, four = ([score_split(model, split, repeats=r, seed=s).bits_per_dim for s in range(40)] for r in (1, 4))
    assert np.std(four) < 0.75 * np.std(one)


def test_a_seed_reproduces_and_leaves_the_callers_generator_alone() -> None:
    split, model = events(2), tiny_model()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second = (score_split(model, split, seed=1).per_example for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.get_rng_state())
    assert score_split(model, split, seed=2).per_example != first


def test_standard_error_of_stratified_values_leaves_out_what_the_strata_explain() -> None:
    generator = torch.Generator().manual_seed(0)
    rank = torch.randperm(500, generator=generator)
    noise = torch.randn(500, generator=generator, dtype=torch.float64)
    values = 100 * rank.double() / 500 + noise
    naive, aware = standard_error(values), standard_error(values, rank)
    assert naive is not None
    assert aware is not None
    assert naive > 1
    assert aware == pytest.approx(1 / math.sqrt(500), rel=0.15)
    assert standard_error(values[:1]) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_examples": 0}, "num_examples must be at least 1, got 0"),
        ({"repeats": 0}, "repeats must be at least 1, got 0"),
        ({"num_examples": 99}, "asked for 99 examples, but the test split has 18"),
    ],
)
def test_impossible_requests_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_split(tiny_model(), events(2), **settings)  # type: ignore[arg-type]
