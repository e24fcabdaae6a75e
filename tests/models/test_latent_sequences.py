"""Latent flows and categorical normalizing flows on spaces small enough to enumerate."""

import functools
from typing import Any

import pytest
import torch
from contracts import Enumerated, check_bounds_are_ordered, check_probabilities_and_samples

from unordinal.data.spec import DataSpec
from unordinal.model_config import CategoricalNfConfig, LatentConfig, ModelConfig
from unordinal.models import build_model
from unordinal.models.latent_flow import KlWarmup, LatentFlow

K, L = 3, 2
SMALL: dict[str, Any] = {"latent_channels": 2, "width": 8, "num_layers": 1, "dropout": 0.0, "channel_width": 4}
CASES: dict[str, ModelConfig] = {
    "af-af": LatentConfig(flow="af-af", num_flows=2, kl_flat=0, kl_rise=0, **SMALL),
    "iaf-scf": LatentConfig(flow="iaf-scf", num_flows=2, kl_flat=0, kl_rise=0, **SMALL),
    "categorical-nf": CategoricalNfConfig(num_mixtures=2, **SMALL),
    "categorical-nf transformer": CategoricalNfConfig(num_mixtures=2, net="transformer", num_heads=2, **SMALL),
}


@functools.cache
def enumerated(name: str) -> Enumerated:
    torch.manual_seed(1)
    return Enumerated.trained(build_model(CASES[name], DataSpec("tiny", K, (L,))))


@pytest.mark.parametrize("name", CASES)
def test_probabilities_sum_to_one_and_samples_follow_them(name: str) -> None:
    check_probabilities_and_samples(enumerated(name))


@pytest.mark.parametrize("name", CASES)
def test_elbo_is_below_iwbo_is_below_log_p_in_the_mean(name: str) -> None:
    check_bounds_are_ordered(enumerated(name))


@torch.no_grad()
def test_the_decoder_is_bayes_rule() -> None:
    model = build_model(CASES["categorical-nf"], DataSpec("tiny", K, (L,))).double()
    assert isinstance(model, LatentFlow)
    v = torch.randn(4, L, 2, dtype=torch.float64)
    classes = torch.arange(K).expand(4, L, K)
    prior = torch.full((K,), 1 / K, dtype=torch.float64)
    likelihood = torch.stack(
        [
            torch.stack(
                [model.posterior.log_prob(v[:, i : i + 1], model.context(classes[:, i : i + 1, k])) for i in range(L)],
                1,
            )
            for k in range(K)
        ],
        dim=-1,
    ).exp()  # (4, L, K)
    expected = likelihood * prior / (likelihood * prior).sum(-1, keepdim=True)
    torch.testing.assert_close(torch.softmax(model.decoder(v), -1), expected)


def test_the_kl_counts_as_the_schedule_says() -> None:
    config = LatentConfig(flow="af-af", num_flows=1, **SMALL)
    model = build_model(config, DataSpec("tiny", K, (L,))).eval()
    assert isinstance(model, LatentFlow)
    x = torch.randint(K, (6, L))
    for epoch, weight in ((0.0, 1e-5), (1.9, 1e-5), (4.0, 0.5), (6.0, 1.0), (29.0, 1.0)):
        model.progressed(fraction=0.0, epoch=epoch)
        torch.manual_seed(0)
        loss = model.training_loss(x)
        torch.manual_seed(0)
        likelihood, minus_kl = model.terms(x)
        torch.testing.assert_close(loss, -(likelihood + weight * minus_kl))
    torch.manual_seed(0)
    bound = model.elbo(x)
    torch.testing.assert_close(bound, likelihood + minus_kl)  # which never weighs
    by_budget = KlWarmup(0.1, 0.2, by_budget=True)
    assert by_budget.weight(fraction=0.2, epoch=0.0) == pytest.approx(0.5)
