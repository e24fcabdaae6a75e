"""Importance-weighted bounds in bounded memory, exact cross-entropies, invalid mass, on models with known answers."""

import math

import numpy as np
import pytest
import torch
from contracts import all_events
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.data.toy import draw_eight_gaussians, eight_gaussians_pmf
from unordinal.evaluate.exact import entropy, score_pmf
from unordinal.evaluate.invalid import invalid_mass
from unordinal.evaluate.likelihood import score_split
from unordinal.flows.density import DiagonalNormal, StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.surjections.cartesian import BinaryProduct

K, L = 4, 3


def coins(num_classes: int = K, length: int = L) -> ArgmaxFlow:
    """Signs of independent normals: every code has the same probability."""
    bits = (num_classes - 1).bit_length()
    model = ArgmaxFlow(
        BinaryProduct(num_classes, StandardLogistic((length, bits))),
        StandardNormal((length, bits)),
        event_shape=(length,),
    )
    model.register_parameter("any", torch.nn.Parameter(torch.zeros(1)))  # a device to live on
    return model


class Counting(ArgmaxFlow):
    """Notes how many rows each call gets."""

    rows: list[int]

    def log_weight(self, x: Tensor) -> Tensor:
        self.rows.append(len(x))
        return super().log_weight(x)


def test_iwbo_tightens_towards_the_truth() -> None:
    split = Split(all_events(K, (L,)).numpy().astype(np.uint8))
    scores = [score_split(coins(), split, bound="iwbo", k=k, seed=1) for k in (1, 10, 1000)]
    elbo = score_split(coins(), split, repeats=30)
    bits = [s.bits_per_dim for s in scores]
    assert bits[0] > bits[1] > bits[2]
    assert bits[2] == pytest.approx(2.0, abs=0.01)  # log2 of 4 codes
    assert abs(bits[0] - elbo.bits_per_dim) < 5 * float(scores[0].standard_error or 0)
    assert [s.kind for s in scores] == ["iwbo-1", "iwbo-10", "iwbo-1000"]
    assert scores[0].nats_per_example == pytest.approx(bits[0] * L * math.log(2))


def test_no_call_grows_with_k() -> None:
    model = coins(length=256)
    model.__class__ = Counting
    assert isinstance(model, Counting)
    split = Split(np.zeros((3, 256), np.uint8))
    for k in (10, 1000):
        model.rows = []
        score_split(model, split, bound="iwbo", k=k, batch_size=32)
        assert sum(model.rows) == 3 * k
        assert max(model.rows) <= 32


def test_exact_cross_entropy() -> None:
    """A uniform model costs log of the number of cells, whatever the probabilities; at the same seed the same."""
    pmf = np.array([[0.5, 0.25, 0, 0], [0.25, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    score = score_pmf(coins(length=2), pmf, bound="iwbo", k=3000)
    assert abs(score.nats_per_example - math.log(16)) < 5 * float(score.standard_error or 0) * 2 * math.log(2) + 1e-3
    assert score.num_examples == 16
    assert entropy(pmf) == pytest.approx(1.5 * math.log(2))
    first, second = (score_pmf(coins(length=2), pmf, seed=3).bits_per_dim for _ in range(2))
    assert first == second
    assert first > score.bits_per_dim
    assert score_pmf(coins(length=2), pmf, repeats=1).standard_error is None
    assert score_pmf(coins(length=2), pmf, bound="iwbo", k=1).standard_error is None
    with pytest.raises(ValueError, match="repeats must be at least 1, got 0"):
        score_pmf(coins(length=2), pmf, repeats=0)


def test_standard_error_of_the_exact_score_is_honest() -> None:
    pmf = np.full((4, 4), 1 / 16)
    scores = [score_pmf(coins(length=2), pmf, repeats=8, seed=s) for s in range(60)]
    spread = np.std([s.bits_per_dim for s in scores], ddof=1)
    claimed = np.mean([s.standard_error for s in scores if s.standard_error])
    assert 0.7 < claimed / spread < 1.4


def test_invalid_mass_of_a_known_model() -> None:
    """Three classes in two bits: a quarter of the codes means nothing."""
    mass = invalid_mass(coins(3, 4), 2000, seed=1)
    assert abs(mass.per_position - 0.25) < 4.5 * mass.per_position_error
    assert abs(mass.per_sequence - (1 - 0.75**4)) < 4.5 * mass.per_sequence_error
    assert 0.002 < mass.per_position_error < 0.01
    never = invalid_mass(coins(4, 4), 100)
    assert never.per_sequence == 0
    assert never.per_sequence_error == pytest.approx(0.005)
    assert "% of positions" in str(mass)
    with pytest.raises(ValueError, match="at least 2 samples, got 1"):
        invalid_mass(coins(), 1)


def test_a_density_that_knows_the_answer_is_scored_at_it() -> None:
    """Normals far on one side: x is certain, and the bound tends to nothing lost."""
    model = ArgmaxFlow(BinaryProduct(2, StandardLogistic((1, 1))), DiagonalNormal((1, 1)), event_shape=(1,))
    model.density.mean.data.fill_(4.0)  # type: ignore[operator]
    split = Split(np.ones((50, 1), np.uint8))
    score = score_split(model, split, bound="iwbo", k=20_000)
    assert abs(score.bits_per_dim) < 0.05


def test_eight_gaussians_are_drawn_from_their_probabilities() -> None:
    pmf = eight_gaussians_pmf()
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    assert entropy(pmf) == pytest.approx(6.31996, abs=1e-5)
    x = draw_eight_gaussians(400_000, np.random.default_rng(0))
    counts = np.zeros_like(pmf)
    np.add.at(counts, tuple(x.T), 1)
    large = pmf > 2e-5
    deviation = (counts - 400_000 * pmf)[large] / np.sqrt(400_000 * pmf[large])
    assert abs(deviation).max() < 5.5
    assert 0.9 < deviation.var() < 1.1
    np.testing.assert_allclose(pmf, pmf.T, atol=1e-15)  # eight-fold symmetry
    np.testing.assert_allclose(pmf, pmf[::-1], atol=1e-15)
