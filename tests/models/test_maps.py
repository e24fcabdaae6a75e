"""Models of maps on 2 x 2 maps of two classes, all sixteen of them: the checks of the sequence models."""

import functools
import itertools
from typing import Any

import pytest
import torch
from contracts import (
    Enumerated,
    all_events,
    check_bounds_are_ordered,
    check_probabilities_and_samples,
    chi_square_p_value,
    frequencies,
)
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.model_config import MapFlowConfig, MapMultinomialConfig, MapVaeConfig, ModelConfig, SurjectionName
from unordinal.models import build_model
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.models.latent_flow import LatentFlow

K, SHAPE, T = 2, (2, 2), 4
SMALL: dict[str, Any] = {"num_levels": 2, "num_flows": 1, "width": 6, "depth": 2, "noise_flows": 2, "noise_width": 4}
SMALL |= {"noise_depth": 1, "context_width": 4, "context_depth": 1}
WAYS: tuple[SurjectionName, ...] = ("softplus", "gumbel", "gumbel-threshold", "round-uniform", "round-variational")
CASES: dict[str, ModelConfig] = {
    **{way: MapFlowConfig(surjection=way, **SMALL) for way in WAYS},
    "softplus mixtures": MapFlowConfig(surjection="softplus", **{**SMALL, "num_mixtures": 2}),
    "vae": MapVaeConfig(latent_channels=2, decoder_width=4, decoder_depth=1, **SMALL),
}


@functools.cache
def enumerated(name: str) -> Enumerated:
    torch.manual_seed(1)
    return Enumerated.trained(build_model(CASES[name], DataSpec("tiny", K, SHAPE)))


@pytest.mark.parametrize("name", CASES)
def test_probabilities_sum_to_one_minus_the_invalid_mass_and_samples_follow_them(name: str) -> None:
    check_probabilities_and_samples(enumerated(name))


@pytest.mark.parametrize("name", CASES)
def test_elbo_is_below_iwbo_is_below_log_p_in_the_mean(name: str) -> None:
    check_bounds_are_ordered(enumerated(name))


@torch.no_grad()
def test_the_vae_against_draws_from_its_prior() -> None:
    """P(x) as the mean of p(x | z) over z ~ p(z), without q: the IWBO gives the same, the ELBO lies below."""
    model = enumerated("vae").model
    assert isinstance(model, LatentFlow)
    torch.manual_seed(1)
    z, _ = model.prior.sample(100_000)
    log_p = torch.log_softmax(model.decoder(z), dim=-1)
    events = all_events(K, SHAPE)
    p = torch.stack([log_p.gather(-1, x.expand(len(z), 2, 2).unsqueeze(-1)).flatten(1).sum(1).exp() for x in events])
    mean, error = p.mean(1), p.std(1) / p.shape[1] ** 0.5  # (16,)
    assert abs(float(mean.sum()) - 1) < 1e-9  # those of every draw sum to one
    log_iwbo, variance = enumerated("vae").log_probabilities
    spread = (error.square() + mean.square() * variance).sqrt()
    assert bool(((log_iwbo.exp() - mean).abs() < 5 * spread).all())
    elbo = torch.stack([model.elbo(events) for _ in range(300)])
    assert bool((elbo.mean(0) <= mean.log() + 4 * elbo.std(0) / 300**0.5 + 4 * error / mean).all())


class KnowingNet(nn.Module):
    """A network that knows which map it denoises."""

    def __init__(self, x: Tensor):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.logits = 50.0 * torch.nn.functional.one_hot(x, K).float()

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return self.logits + self.weight


def test_reconstructions() -> None:
    x = all_events(K, SHAPE)
    diffusion = MultinomialDiffusion(KnowingNet(x), num_classes=K, event_shape=SHAPE, num_steps=100)
    assert torch.equal(diffusion.reconstruct(x), x)
    first, second = (tiny_diffusion().reconstruct(x, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, x)  # that network knows nothing
    vae = enumerated("vae").model
    assert isinstance(vae, LatentFlow)
    with torch.no_grad():
        z, _ = vae.encoded(x, torch.Generator().manual_seed(2))
        expected = torch.softmax(vae.decoder(z), -1).argmax(-1)
    assert torch.equal(vae.reconstruct(x, generator=torch.Generator().manual_seed(2)), expected)
    with pytest.raises(ValueError, match="nothing to reconstruct"):
        enumerated("softplus").model.reconstruct(x)


def tiny_diffusion() -> MultinomialDiffusion:
    torch.manual_seed(0)
    config = MapMultinomialConfig(num_steps=T, width=4, num_levels=2, deep_blocks=2, num_heads=2, times="uniform")
    model = build_model(config, DataSpec("tiny", K, SHAPE))
    for parameter in model.parameters():
        parameter.data += 0.4 * torch.randn_like(parameter)
    model = model.double().eval().requires_grad_(False)
    assert isinstance(model, MultinomialDiffusion)
    return model


def exact_probabilities(model: MultinomialDiffusion, times: list[int]) -> Tensor:
    """P(x_0) of the chain that visits `times`: the uniform start times one matrix over the sixteen maps per step."""
    states = all_events(K, SHAPE)
    p = torch.full((len(states),), 1 / len(states), dtype=torch.float64)
    for t, s in itertools.pairwise(times):
        now, earlier = torch.full((len(states),), t), torch.full((len(states),), s)
        r = torch.softmax(model.logits(states, now), -1)
        posterior = model.noise.posterior(r, states, now, earlier)  # (S, H, W, K)
        step = [posterior.gather(-1, x.expand(len(states), 2, 2).unsqueeze(-1)).flatten(1).prod(1) for x in states]
        p = p @ torch.stack(step, dim=1)
    return p


def test_the_diffusion_is_what_its_chain_says() -> None:
    model, states = tiny_diffusion(), all_events(K, SHAPE)
    p = exact_probabilities(model, model.times_of(None))
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    torch.manual_seed(0)
    draws = torch.stack([model.elbo(states.repeat(50, 1, 1)).reshape(50, -1) for _ in range(60)]).flatten(0, 1)
    error = draws.std(0) / len(draws) ** 0.5
    assert bool((draws.mean(0) <= p.log() + 4 * error).all())
    weights = model.log_weight(states.repeat(10_000, 1, 1)).reshape(10_000, -1).exp()
    assert bool(((weights.mean(0) - p).abs() < 4.5 * weights.std(0) / 100).all())
    for steps in (None, 2):
        counts = frequencies(model, 20_000, seed=1, steps=steps)
        exact = exact_probabilities(model, model.times_of(steps))
        assert chi_square_p_value(counts, exact) > 1e-4
        assert chi_square_p_value(counts, torch.roll(exact, 1)) < 1e-4  # the test can fail


def made(config: ModelConfig, shape: tuple[int, ...] = (4, 8)) -> CategoricalModel:
    return build_model(config, DataSpec("tiny", 3, shape)).eval()


@pytest.mark.parametrize("name", [*CASES, "multinomial"])
def test_samples_have_any_size_and_a_seed_reproduces_them(name: str) -> None:
    model = made(CASES[name] if name in CASES else MapMultinomialConfig(num_steps=3, width=4, num_levels=2))
    first, second, other = (
        model.sample(3, generator=torch.Generator().manual_seed(seed), event_shape=(6, 4)) for seed in (5, 5, 6)
    )
    assert first.shape == (3, 6, 4)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert model.sample(2).shape == (2, 4, 8)


def test_sizes_that_cannot_be_halved_are_refused() -> None:
    model = made(MapFlowConfig(surjection="softplus", **{**SMALL, "num_levels": 3}))
    with pytest.raises(ValueError, match=r"multiples of 4, got \(6, 8\)"):
        model.sample(1, event_shape=(6, 8))
    with pytest.raises(ValueError, match=r"multiples of 4, got \(4, 6\)"):
        model.elbo(torch.zeros(1, 4, 6, dtype=torch.long))


def test_one_real_for_two_classes_is_refused() -> None:
    with pytest.raises(ValueError, match="binary gives one real per pixel for 2 classes"):
        build_model(MapFlowConfig(surjection="binary", **SMALL), DataSpec("tiny", 2, (4, 8)))


@pytest.mark.parametrize(
    ("config", "shape", "message"),
    [
        (MapFlowConfig(num_levels=3), (4, 6), r"multiples of 4; the maps of tiny are 4 x 6 \(model.num_levels is 3\)"),
        (MapMultinomialConfig(), (3, 4), "multiples of 2; the maps of tiny are 3 x 4"),
        (MapVaeConfig(), (8,), r"takes maps, \(N, height, width\) arrays; the examples of tiny have shape \(8,\)"),
        (MapFlowConfig(num_flows=0), (4, 8), "num_flows"),
        (MapFlowConfig(surjection="ordinal"), (8, 8), "ordinal gives one real per pixel for 3 classes"),
        (MapVaeConfig(latent_channels=1), (8, 8), "latent_channels must be at least 2"),
        (MapVaeConfig(latent_channels=-1), (8, 8), "latent_channels must be at least 2"),
        (MapFlowConfig(surjection="nothing"), (8, 8), "unknown surjection 'nothing'"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(config: ModelConfig, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(config, shape)
