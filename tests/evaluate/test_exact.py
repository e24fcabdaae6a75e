"""Scores under known probabilities: cross-entropies of models with known answers, and honest errors."""

import math

import numpy as np
import pytest
import torch

from unordinal.evaluate.exact import entropy, score_pmf
from unordinal.evaluate.likelihood import Evaluate
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.surjections.cartesian import BinaryProduct


def coins(num_classes: int, length: int) -> ArgmaxFlow:
    """Signs of independent normals: every code has the same probability."""
    bits = (num_classes - 1).bit_length()
    model = ArgmaxFlow(
        BinaryProduct(num_classes, StandardLogistic((length, bits))),
        StandardNormal((length, bits)),
        event_shape=(length,),
    )
    model.register_parameter("any", torch.nn.Parameter(torch.zeros(1)))  # a device to live on
    return model


def test_exact_cross_entropy() -> None:
    """A uniform model costs log of the number of cells, whatever the probabilities; at the same seed the same."""
    pmf = np.array([[0.5, 0.25, 0, 0], [0.25, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    score = score_pmf(coins(4, 2), pmf, Evaluate(bound="iwbo", k=3000))
    assert abs(score.nats_per_example - math.log(16)) < 5 * float(score.standard_error or 0) * 2 * math.log(2) + 1e-3
    assert score.num_examples == 16
    assert entropy(pmf) == pytest.approx(1.5 * math.log(2))
    first, second = (score_pmf(coins(4, 2), pmf, Evaluate(seed=3)).bits_per_dim for _ in range(2))
    assert first == second
    assert first > score.bits_per_dim
    assert score_pmf(coins(4, 2), pmf, Evaluate(repeats=1)).standard_error is None
    assert score_pmf(coins(4, 2), pmf, Evaluate(bound="iwbo", k=1)).standard_error is None
    assert "16 draws for each of all 16 x" in score_pmf(coins(4, 2), pmf).method  # unless told otherwise


def test_standard_error_of_the_exact_score_is_honest() -> None:
    pmf = np.full((4, 4), 1 / 16)
    scores = [score_pmf(coins(4, 2), pmf, Evaluate(repeats=8, seed=s)) for s in range(60)]
    spread = np.std([s.bits_per_dim for s in scores], ddof=1)
    claimed = np.mean([s.standard_error for s in scores if s.standard_error])
    assert 0.7 < claimed / spread < 1.4
