"""Noise processes, compared with Bayes' rule. One is defined here: masking, with K + 1 classes and continuous time."""

import itertools
import math

import pytest
import torch
from contracts import TableNet, all_events, check_process, chi_square_p_value, frequencies
from torch import Tensor

from unordinal.diffusion.choosing import Chooser, independent
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.diffusion.schedules import Schedule, cosine_schedule, linear
from unordinal.diffusion.uniform import UniformNoise
from unordinal.models.diffusion import Diffusion
from unordinal.numerics import draw_categorical, expand_like, sum_except_batch, uniform

K, L = 3, 2


class ToyMasking(NoiseProcess):
    """At time t in (0, 1], every class is replaced by a mask, which is class K, with probability t."""

    def __init__(self, num_classes: int):
        super().__init__(num_classes, Schedule(linear), has_mask=True)

    def draw_prior(
        self, shape: tuple[int, ...], device: torch.device, *, generator: torch.Generator | None = None
    ) -> Tensor:
        return torch.full(shape, self.num_classes, device=device)

    def log_prior(self, z: Tensor) -> Tensor:
        return sum_except_batch(torch.where(z == self.num_classes, 0.0, -math.inf))

    def prior_term(self, x: Tensor) -> Tensor:
        return torch.zeros(len(x), device=x.device)

    def corrupt(self, x: Tensor, t: Tensor, *, generator: torch.Generator | None = None) -> Tensor:
        is_masked = uniform(x.shape, x.device, generator) < expand_like(t, x)
        return torch.where(is_masked, self.num_classes, x)

    def predicted(self, output: Tensor, z: Tensor, t: Tensor) -> Tensor:
        return output

    def loss(self, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        log_p = torch.log_softmax(logits, -1).gather(-1, x.unsqueeze(-1)).squeeze(-1)
        return sum_except_batch(torch.where(z == self.num_classes, -log_p, 0.0)) / t.to(log_p)

    def step(
        self,
        logits: Tensor,
        z: Tensor,
        t: Time,
        s: Time,
        *,
        generator: torch.Generator | None = None,
        choose: Chooser = independent,
    ) -> Tensor:
        is_masked = z == self.num_classes
        is_shown = is_masked & choose(is_masked * (t - s) / t, generator)
        return torch.where(is_shown, draw_categorical(logits, generator), z)

    def marginal(self, x: Tensor, t: Tensor) -> Tensor:
        hidden = expand_like(t.double(), x).expand(x.shape).unsqueeze(-1)
        return torch.cat([(1 - hidden) * torch.nn.functional.one_hot(x, self.num_classes), hidden], -1)

    def posterior(self, r: Tensor, z: Tensor, t: Tensor, s: Tensor) -> Tensor:
        stays = expand_like((s / t).double(), z).expand(z.shape).unsqueeze(-1)
        masked = torch.cat([(1 - stays) * r, stays], -1)
        shown = torch.nn.functional.one_hot(z, self.num_classes + 1).double()
        return torch.where((z == self.num_classes).unsqueeze(-1), masked, shown)


CASES: dict[str, tuple[NoiseProcess, list[tuple[float, float]]]] = {
    "uniform": (UniformNoise(K, cosine_schedule(4)), [(1, 0), (2, 1), (3, 1), (4, 0), (4, 3)]),
    "uniform, denoiser": (UniformNoise(4, cosine_schedule(20), output="denoiser"), [(1, 0), (9, 4), (20, 19)]),
    "toy masking": (ToyMasking(K), [(0.25, 0.125), (0.5, 0.0), (1.0, 0.75), (1.0, 0.0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_contract(name: str) -> None:
    check_process(*CASES[name])


def by_orders(model: Diffusion) -> tuple[Tensor, Tensor]:
    """P(x) and the bound of unmasking positions in random order: the means over orders of P and of log P."""
    states = all_events(K, (L,))
    per_order = []
    for order in itertools.permutations(range(L)):
        log_p, z = torch.zeros(len(states), dtype=torch.float64), torch.full_like(states, K)
        for position in order:
            logits = torch.log_softmax(model.logits(z, torch.ones(len(z))), -1)
            log_p = log_p + logits[:, position].gather(-1, states[:, position : position + 1]).squeeze(-1)
            z = z.index_copy(1, torch.tensor([position]), states[:, position : position + 1])
        per_order.append(log_p)
    stacked = torch.stack(per_order)
    return stacked.exp().mean(0), stacked.mean(0)


@torch.no_grad()
def test_a_model_accepts_any_process() -> None:
    """A diffusion in continuous time: its bound, samples, abilities and refused settings."""
    net = TableNet(K, L, 0, num_input_classes=K + 1)
    model = Diffusion(net, noise=ToyMasking(K), event_shape=(L,))
    p, bound = by_orders(model)
    assert float(p.sum()) == pytest.approx(1)
    torch.manual_seed(0)
    states = all_events(K, (L,))
    draws = torch.stack([model.elbo(states.repeat(200, 1)).view(200, -1) for _ in range(200)]).flatten(0, 1)
    assert bool(((draws.mean(0) - bound).abs() < 4.5 * draws.std(0) / len(draws) ** 0.5).all())
    assert bool((bound <= p.log() + 1e-12).all())
    losses = torch.stack([model(states).mean() for _ in range(4000)])
    assert abs(float(losses.mean() + bound.mean())) < 4.5 * float(losses.std()) / 4000**0.5
    counts = frequencies(
        model, 20_000, seed=0, steps=1000, sampler="ancestral"
    )  # with this many steps, two positions are hardly ever unmasked at once
    assert chi_square_p_value(counts, p) > 1e-4
    assert chi_square_p_value(counts, torch.roll(p, 1)) < 1e-4  # the test can fail
    assert model.times.num is None
    assert model.weights is None
    assert model.reconstruct(states).max() < K
    for call, message in (
        (lambda: model.sample(1, sampler="ancestral"), "time is continuous: give `steps` of at least 1"),
        (lambda: model.log_weight(states), "does not read the time|importance weights"),
        (lambda: Diffusion(net, noise=ToyMasking(K), event_shape=(L,), times="importance"), "discrete steps"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_times_are_uniform_and_spaced_evenly() -> None:
    discrete, real = CASES["uniform"][0], CASES["toy masking"][0]
    position = torch.arange(400, dtype=torch.float64) / 400
    assert torch.bincount(discrete.time_at(position))[1:].tolist() == [100] * 4
    assert float(real.time_at(position).mean()) == pytest.approx(0.5, abs=2e-3)
    assert 0 < float(real.time_at(position).min()) <= float(real.time_at(position).max()) <= 1
    assert discrete.spaced_times(None) == [4, 3, 2, 1, 0]
    assert discrete.spaced_times(2) == [4, 2, 0]
    assert discrete.spaced_times(None, start=0.5) == [2, 1, 0]
    assert real.spaced_times(4) == [1, 0.75, 0.5, 0.25, 0]
    assert real.spaced_times(2, start=0.5) == [0.5, 0.25, 0]
    assert discrete.network_time(torch.tensor([1, 4])).tolist() == [0.25, 1.0]
    for steps in (0, 5):
        with pytest.raises(ValueError, match=f"between 1 and 4, the model's own; got {steps}"):
            discrete.spaced_times(steps)


@pytest.mark.parametrize("sampler", ["ancestral", "corrected", "first-hitting", "spread", "entropy", "confidence"])
def test_every_sampler_keeps_known_positions_under_a_mask_of_ones_own(sampler: str) -> None:
    model = Diffusion(TableNet(K, L, 0, num_input_classes=K + 1), noise=ToyMasking(K), event_shape=(L,))
    known = torch.full((L,), -1)
    known[1] = 2
    steps = 4 if sampler in ("ancestral", "corrected") else 1
    x = model.sample(200, known=known, sampler=sampler, steps=steps, generator=torch.Generator().manual_seed(0))
    assert bool((x[:, 1] == 2).all())
    assert int(x.max()) < K
