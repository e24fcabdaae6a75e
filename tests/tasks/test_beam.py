"""Beam search, compared with the maximum over all sequences."""

import math

import pytest
import torch
from contracts import all_events
from torch import nn

from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import ClassTransformer
from unordinal.tasks.beam import beam_search

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
    searched = beam_search(model, observed, error_rate=rate, beam=K**L)
    found, scores = searched.found, searched.scores
    log_p, onehot = model.log_prob(states), nn.functional.one_hot(states, K).double()
    for row, x in enumerate(observed):
        wrong = (states != x).sum(1)
        exact = log_p + wrong * math.log(rate / (K - 1)) + (L - wrong) * math.log(1 - rate)
        assert torch.equal(found[row, 0], states[exact.argmax()])
        torch.testing.assert_close(scores[row], exact.sort(descending=True).values)
        marginal = torch.einsum("s,slk->lk", torch.softmax(exact, 0), onehot)
        torch.testing.assert_close(searched.posterior[row], marginal)


@torch.no_grad()
def test_probabilities_sum_to_one_and_a_narrow_beam_takes_one_sequence() -> None:
    model, observed = causal_model(), torch.tensor([[0, 2, 1, 1]])
    p = beam_search(model, observed, error_rate=0.1, beam=5).posterior
    torch.testing.assert_close(p.sum(-1), torch.ones(1, L, dtype=torch.float64))
    narrow = beam_search(model, observed, error_rate=0.1, beam=1)
    assert narrow.found.shape == (1, 1, L)
    torch.testing.assert_close(narrow.posterior.sum(-1), torch.ones(1, L, dtype=torch.float64))
    with pytest.raises(ValueError, match="`beam` must be at least 1, got 0"):
        beam_search(model, observed, error_rate=0.1, beam=0)


@torch.no_grad()
def test_dropped_candidates_count_so_that_a_narrow_beam_is_not_too_confident() -> None:
    """The posterior of a narrow beam stays close to the exact one; that of its survivors alone does not."""
    model, rate, states = causal_model(), 0.3, all_events(K, (L,))
    log_p, onehot = model.log_prob(states), nn.functional.one_hot(states, K).double()
    with_dropped, survivors = [], []
    for x in states[::7]:
        wrong = (states != x).sum(1)
        joint = log_p + wrong * math.log(rate / (K - 1)) + (L - wrong) * math.log(1 - rate)
        exact = torch.einsum("s,slk->lk", torch.softmax(joint, 0), onehot)
        narrow = beam_search(model, x.unsqueeze(0), error_rate=rate, beam=2)
        kept = torch.einsum(
            "m,mlk->lk", torch.softmax(narrow.scores[0], 0), nn.functional.one_hot(narrow.found[0], K).double()
        )
        with_dropped.append(float((narrow.posterior[0] - exact).abs().sum(-1).mean()))
        survivors.append(float((kept - exact).abs().sum(-1).mean()))
    assert sum(with_dropped) < 0.7 * sum(survivors)
