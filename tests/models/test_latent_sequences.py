"""Latent flows and categorical normalizing flows on spaces small enough to enumerate."""

import functools
import math
from typing import Any

import pytest
import torch
from contracts import Enumerated, check_bounds_are_ordered, check_probabilities_and_samples

from unordinal.data.spec import DataSpec
from unordinal.model_config import CategoricalNfConfig, LatentConfig, ModelConfig
from unordinal.models import build_model
from unordinal.models.categorical_nf import BayesDecoder
from unordinal.models.latent_flow import KlWarmup, LatentFlow
from unordinal.nets.recurrent import AroundLSTM

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
    assert isinstance(model.decoder, BayesDecoder)
    model.decoder.log_prior.normal_()
    prior = torch.softmax(model.decoder.log_prior, -1)
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
    config = LatentConfig(flow="af-af", num_flows=1, kl_flat=0.2, kl_rise=0.4, **SMALL)
    model = build_model(config, DataSpec("tiny", K, (L,))).eval()
    assert isinstance(model, LatentFlow)
    x = torch.randint(K, (6, L))
    for fraction, weight in ((0.0, 1e-5), (0.19, 1e-5), (0.4, 0.5), (0.6, 1.0), (1.0, 1.0)):
        model.progressed(fraction)
        torch.manual_seed(0)
        loss = model.training_loss(x)
        torch.manual_seed(0)
        likelihood, minus_kl = model.terms(x)
        torch.testing.assert_close(loss, -(likelihood + weight * minus_kl))
    torch.manual_seed(0)
    bound = model.elbo(x)
    torch.testing.assert_close(bound, likelihood + minus_kl)  # which never weighs
    for flat, rise in ((-0.1, 0.2), (0.6, 0.6), (math.nan, 0.1)):
        with pytest.raises(ValueError, match="parts of the budget"):
            KlWarmup(flat, rise)


@pytest.mark.parametrize("name", ["af-af", "iaf-scf"])
def test_sampling_tells_of_every_position(name: str) -> None:
    told: list[float] = []
    build_model(CASES[name], DataSpec("tiny", K, (5,))).sample(3, advance=told.append)
    assert sum(told) == 15
    assert len(told) == (5 if name == "af-af" else 1)


@torch.no_grad()
def test_the_emission_sees_its_own_numbers_only_apart_from_the_others() -> None:
    torch.manual_seed(0)
    net = AroundLSTM(2, 3, width=4).double()
    v = torch.randn(1, 5, 2, dtype=torch.float64)
    other = v.clone()
    other[:, 2] += 1
    read: list[torch.Tensor] = []
    net.out.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    net(v), net(other)
    own = net.look.out_channels
    differs = (read[0] != read[1])[0]  # (L, own + 2 W)
    assert bool(differs[2, :own].any())
    assert not bool(differs[2, own:].any())  # what the LSTMs say of a position leaves the position out
    assert bool(differs[3, own : own + 4].any())
    assert bool(differs[1, own + 4 :].any())
    assert not bool(differs[1, own : own + 4].any())
