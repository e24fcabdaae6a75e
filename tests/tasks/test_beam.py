"""Beam search, compared with the maximum over all sequences."""

import math

import pytest
import torch
from contracts import all_events
from torch import nn

from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import ClassTransformer
from unordinal.tasks.beam import beam_posterior, beam_search

K, L = 3, 4


def causal_model() -> AutoregressiveModel:
    torch.manual_seed(0)
    model = AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(L,)).double()
    nn.init.normal_(model.net.out.weight, std=1.5)
    return model.eval()


@torch.no_grad()
def test_a_full_beam_holds_every_sequence_in_the_order_of_its_score() -> None:
    model, rate, states = causal_model(), 0.2, all_events(K, (L,))
    observed = torch.tensor([[0, 2, 1, 1], [2, 2, 0, 1]])
    found, scores = beam_search(model, observed, error_rate=rate, beam=K**L)
    log_p = model.log_prob(states)
    for row, x in enumerate(observed):
        wrong = (states != x).sum(1)
        exact = log_p + wrong * math.log(rate / (K - 1)) + (L - wrong) * math.log(1 - rate)
        assert torch.equal(found[row, 0], states[exact.argmax()])
        torch.testing.assert_close(scores[row], exact.sort(descending=True).values)


@torch.no_grad()
def test_probabilities_sum_to_one_and_a_narrow_beam_takes_one_sequence() -> None:
    model, observed = causal_model(), torch.tensor([[0, 2, 1, 1]])
    p = beam_posterior(model, observed, error_rate=0.1, beam=5)
    torch.testing.assert_close(p.sum(-1), torch.ones(1, L, dtype=torch.float64))
    found, _ = beam_search(model, observed, error_rate=0.1, beam=1)
    assert torch.equal(beam_posterior(model, observed, error_rate=0.1, beam=1).argmax(-1), found[:, 0])
    with pytest.raises(ValueError, match="`beam` must be at least 1, got 0"):
        beam_search(model, observed, error_rate=0.1, beam=0)
