"""The denoiser of a diffusion: chains, samplers by name, posteriors and probabilities of single positions."""

import itertools

import numpy as np
import pytest
import torch
from contracts import TableNet, all_events
from torch import Tensor

from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.samplers import SAMPLERS, Ancestral
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.models.denoising import RECONSTRUCTION_STEPS, DiffusionDenoiser
from unordinal.models.diffusion import Diffusion
from unordinal.progress import Watcher, watching

K, L = 3, 3
STATES = all_events(K, (L,))


class NoTime(TableNet):
    """A table of logits that does not depend on the time."""

    reads_time = False

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return super().forward(z, torch.ones_like(time))


def masked_model() -> Diffusion:
    return Diffusion(NoTime(K, L, 0, num_input_classes=K + 1), noise=MaskCountNoise(K), event_shape=(L,))


def uniform_model() -> Diffusion:
    return Diffusion(TableNet(K, L, 0), noise=ContinuousUniformNoise(K), event_shape=(L,))


def stepped_model(num_steps: int = 8) -> Diffusion:
    noise = UniformNoise(K, cosine_schedule(num_steps))
    return Diffusion(TableNet(K, L, num_steps), noise=noise, event_shape=(L,))


@torch.no_grad()
def test_the_posterior_of_noisy_examples_is_bayes_rule() -> None:
    model, noise = uniform_model(), 0.3
    t = model.noise.schedule.time_of(torch.full((len(STATES),), noise))
    r = torch.softmax(model.logits(STATES, t), -1)
    likelihood = (1 - noise) * torch.eye(K, dtype=torch.float64) + noise / K  # q(z | x), (x, z)
    bayes = r * likelihood[:, STATES].permute(1, 2, 0)
    assert model.denoiser.posterior is not None
    torch.testing.assert_close(model.denoiser.posterior(STATES, noise), bayes / bayes.sum(-1, keepdim=True))
    for wrong in (0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match=f"must be between 0 and 1; got {wrong}"):
            model.denoiser.posterior(STATES, wrong)
    assert masked_model().denoiser.posterior is None


@torch.no_grad()
def test_in_discrete_steps_what_is_seen_at_a_position_counts_with_the_given_noise() -> None:
    model, noise = stepped_model(), 0.3
    steps = torch.arange(1, 9)
    nearest = int((model.noise.schedule.noise(steps) - noise).abs().argmin()) + 1
    r = torch.softmax(model.logits(STATES, torch.full((len(STATES),), nearest)), -1)
    likelihood = (1 - noise) * torch.eye(K, dtype=torch.float64) + noise / K
    bayes = r * likelihood[:, STATES].permute(1, 2, 0)
    assert model.denoiser.posterior is not None
    torch.testing.assert_close(model.denoiser.posterior(STATES, noise), bayes / bayes.sum(-1, keepdim=True))


def test_the_chain_ends_in_what_sample_returns() -> None:
    for model in (masked_model(), stepped_model()):
        chain = list(model.denoiser.chain(5, generator=torch.Generator().manual_seed(2), steps=2))
        assert len(chain) == 3
        assert chain[-1][0] == 0
        assert torch.equal(chain[-1][1], model.sample(5, generator=torch.Generator().manual_seed(2), steps=2))


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_by_name_and_their_calls(name: str) -> None:
    model = masked_model()
    with watching(Watcher()) as watcher:
        x = model.sample(4, sampler=name, steps=2)
    assert int(x.max()) < K
    assert 0 < watcher.network_calls <= 8
    assert model.denoiser.whole_calls(name, 2) == (None if name in ("ancestral", "corrected") else 2)


def test_what_suits_the_noise() -> None:
    assert set(masked_model().denoiser.samplers) == set(SAMPLERS)
    assert uniform_model().denoiser.samplers == ("ancestral", "corrected", "spread")
    assert stepped_model().denoiser.whole_calls(None, 3) == 8
    assert masked_model().denoiser.whole_calls(None, 2) == 2
    assert uniform_model().denoiser.whole_calls(None, 3) is None
    with pytest.raises(ValueError, match="unknown sampler 'entropi'; did you mean entropy"):
        masked_model().sample(1, sampler="entropi")
    with pytest.raises(ValueError, match="unknown sampler 'entropy'"):
        uniform_model().sample(1, sampler="entropy", steps=2)
    assert uniform_model().sample(2, sampler=Ancestral(3)).shape == (2, L)


@pytest.mark.parametrize("known", [torch.tensor([2, -1, 0]), np.array([2, -1, 0]), [2, -1, 0], (2, -1, 0)])
def test_known_positions_may_be_a_tensor_an_array_or_a_list(known: object) -> None:
    for model in (masked_model(), stepped_model()):
        x = model.sample(6, known=known, generator=torch.Generator().manual_seed(0))
        assert torch.equal(x[:, [0, 2]], torch.tensor([[2, 0]]).expand(6, 2))
    each = masked_model().sample(2, known=[[2, -1, 0], [-1, 1, 1]])
    assert each[0, 0] == 2
    assert each[1, 1:].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ([[0, 1], [0]], "`known` must be an array of integer classes, or lists of equal length, got list"),
        ([0.5, 1, -1], "`known` must hold integers"),
        ([0, -1], r"of shape \(3,\) or \(2, 3\)"),
        ([0, 3, -1], "class 3; expected 0 to 2, or -1"),
        ([0, -2, -1], "class -2"),
        ([0, 1, 2], "leaves nothing free"),
        ("ab", "`known` must"),
        ([None, 1, 2], "`known` must"),
    ],
)
def test_what_cannot_be_known_is_refused_in_one_line(known: object, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        masked_model().sample(2, known=known)
    assert "\n" not in str(error.value)


def test_reconstructions_are_half_way_into_the_noise_and_back() -> None:
    for model, calls in ((stepped_model(), 4), (stepped_model(1), 1), (uniform_model(), RECONSTRUCTION_STEPS)):
        with watching(Watcher()) as watcher:
            x = model.denoiser.reconstruct(STATES, generator=torch.Generator().manual_seed(0))
        assert watcher.network_calls == calls * len(STATES)
        assert x.shape == STATES.shape
        assert int(x.max()) < K
    assert isinstance(stepped_model().denoiser, DiffusionDenoiser)


@torch.no_grad()
def test_temperature_0_takes_the_likeliest_class_and_a_tiny_one_no_nan() -> None:
    model = masked_model()
    coldest = [model.sample(20, temperature=t, sampler="entropy") for t in (0.0, 1e-40, 1e-30, 1e-6)]
    for first, second in itertools.pairwise(coldest):
        assert torch.equal(first, second)
    assert len(coldest[0].unique(dim=0)) == 1
