"""Latent flows, categorical normalizing flows and the VAE on spaces small enough to enumerate."""

import functools
import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from contracts import Enumerated, all_events, check_bounds_are_ordered, check_probabilities_and_samples

from unordinal.config import ModelSettings
from unordinal.data.spec import DataSpec
from unordinal.models.latent_flow import KlWarmup, LatentFlow
from unordinal.nets.settings import LSTM, DenseNet, Transformer
from unordinal.progress import Watcher, watching
from unordinal.recipes.latent_flow import CategoricalNfSettings, LatentFlowSettings, VaeSettings
from unordinal.recipes.settings import Levels, MapInverse, Mixture

K, L = 3, 2
MAP = (2, 2)  # of two classes: sixteen maps
SMALL: dict[str, Any] = {"latent_channels": 2, "channel_width": 4}
DENSITY = Mixture(LSTM(8, 1), 2, 4)
VAE = VaeSettings(
    Levels(DenseNet(6, 2), 2, 1), MapInverse(DenseNet(4, 1), DenseNet(4, 1), 2), DenseNet(4, 1), latent_channels=2
)
CASES: dict[str, ModelSettings] = {
    "af-af": LatentFlowSettings(LSTM(8, 1), "af-af", num_flows=2, kl_flat=0, kl_rise=0, **SMALL),
    "iaf-scf": LatentFlowSettings(LSTM(8, 1), "iaf-scf", num_flows=2, kl_flat=0, kl_rise=0, **SMALL),
    "two layers": LatentFlowSettings(LSTM(6, 2), "af-af", num_flows=1, kl_flat=0, kl_rise=0, **SMALL),
    "categorical-nf": CategoricalNfSettings(DENSITY, 2),
    "categorical-nf transformer": CategoricalNfSettings(replace(DENSITY, net=Transformer(8, 1, num_heads=2)), 2),
    "vae": VAE,
}


@functools.cache
def enumerated(name: str) -> Enumerated:
    torch.manual_seed(1)
    return Enumerated.trained(
        CASES[name].build(DataSpec("tiny", 2, MAP) if name == "vae" else DataSpec("tiny", K, (L,)))
    )


@pytest.mark.parametrize("name", CASES)
def test_probabilities_sum_to_one_and_samples_follow_them(name: str) -> None:
    check_probabilities_and_samples(enumerated(name))


@pytest.mark.parametrize("name", CASES)
def test_elbo_is_below_iwbo_is_below_log_p_in_the_mean(name: str) -> None:
    check_bounds_are_ordered(enumerated(name))


def test_the_kl_counts_as_the_schedule_says() -> None:
    config = LatentFlowSettings(LSTM(8, 1), "af-af", num_flows=1, kl_flat=0.2, kl_rise=0.4, **SMALL)
    model = config.build(DataSpec("tiny", K, (L,))).eval()
    assert isinstance(model, LatentFlow)
    x = torch.randint(K, (6, L))
    for fraction, weight in ((0.0, 1e-5), (0.19, 1e-5), (0.4, 0.5), (0.6, 1.0), (1.0, 1.0)):
        model.hooks.progressed(fraction)
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
    with watching(Watcher(told.append)):
        CASES[name].build(DataSpec("tiny", K, (5,))).sample(3)
    assert sum(told) == pytest.approx(3)
    assert len(told) == (5 if name == "af-af" else 1)


@torch.no_grad()
def test_the_vae_against_draws_from_its_prior() -> None:
    """P(x) as the mean of p(x | z) over z ~ p(z), without q: the IWBO gives the same, the ELBO lies below."""
    model = enumerated("vae").model
    assert isinstance(model, LatentFlow)
    torch.manual_seed(1)
    z, _ = model.prior.sample(100_000)
    log_p = torch.log_softmax(model.decoder(z), dim=-1)
    events = all_events(2, MAP)
    p = torch.stack([log_p.gather(-1, x.expand(len(z), 2, 2).unsqueeze(-1)).flatten(1).sum(1).exp() for x in events])
    mean, error = p.mean(1), p.std(1) / p.shape[1] ** 0.5  # (16,)
    assert abs(float(mean.sum()) - 1) < 1e-9  # those of every draw sum to one
    log_iwbo, variance = enumerated("vae").log_probabilities
    spread = (error.square() + mean.square() * variance).sqrt()
    assert bool(((log_iwbo.exp() - mean).abs() < 5 * spread).all())
    elbo = torch.stack([model.elbo(events) for _ in range(300)])
    assert bool((elbo.mean(0) <= mean.log() + 4 * elbo.std(0) / 300**0.5 + 4 * error / mean).all())


def test_reconstructions_are_the_decoder_at_its_best() -> None:
    vae, x = enumerated("vae").model, all_events(2, MAP)
    assert isinstance(vae, LatentFlow)
    with torch.no_grad():
        z, _ = vae.encoded(x, torch.Generator().manual_seed(2))
        expected = torch.softmax(vae.decoder(z), -1).argmax(-1)
    assert torch.equal(vae.reconstruct(x, generator=torch.Generator().manual_seed(2)), expected)


def test_maps_have_any_size_and_a_seed_reproduces_them() -> None:
    model = VAE.build(DataSpec("tiny", 3, (4, 8))).eval()
    first, second, other = (
        model.sample(3, generator=torch.Generator().manual_seed(seed), event_shape=(6, 4)) for seed in (5, 5, 6)
    )
    assert first.shape == (3, 6, 4)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert model.sample(2).shape == (2, 4, 8)


@pytest.mark.parametrize(
    ("config", "shape", "message"),
    [
        (VAE, (8,), r"takes maps, \(N, height, width\) arrays; the examples of tiny have shape \(8,\)"),
        (replace(VAE, latent_channels=1), (8, 8), "latent_channels` must be at least 2"),
        (replace(VAE, latent_channels=-1), (8, 8), "latent_channels` must be at least 2"),
        (CategoricalNfSettings(DENSITY, 0), (4,), "latent_channels` must be at least 1, got 0"),
        (LatentFlowSettings(LSTM(8, 1), "af"), (4,), r"unknown flow 'af' \(known: af-af, iaf-scf\)"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(config: ModelSettings, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.build(DataSpec("tiny", 3, shape))
