"""Draws of bounds: their shape, their mean by enumeration, and what their random numbers depend on."""

import math

import pytest
import torch
from blocks import built, examples
from contracts import TableNet, all_events, analytic_elbo
from torch import Tensor, nn

from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.bound import WeightSums, bound, importance_bound, weight_sums
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.surjections.cartesian import BinaryProduct

K, L, T = 3, 2, 4
STATES = all_events(K, (L,))


def diffusion() -> Diffusion:
    return Diffusion(TableNet(K, L, T), noise=UniformNoise(K, cosine_schedule(T)), event_shape=(L,))


def flow() -> ArgmaxFlow:
    return ArgmaxFlow(BinaryProduct(K, StandardLogistic((L, 2))), StandardNormal((L, 2)), event_shape=(L,))


def arm() -> AutoregressiveModel:
    torch.manual_seed(0)
    model = AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(L,))
    nn.init.normal_(model.net.out.weight)
    return model


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("make", [diffusion, flow, arm])
def test_draws_are_float64_and_depend_on_the_generator_alone(make: type) -> None:
    model = make().train()
    told: list[float] = []
    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = bound(model, STATES, draws=3, generator=seeded(1), advance=told.append)
    assert first.shape == (3, len(STATES))
    assert first.dtype == torch.float64
    assert not first.requires_grad
    assert told == [len(STATES)] * 3
    assert torch.equal(first, bound(model, STATES, draws=3, generator=seeded(1)))
    assert torch.equal(first, bound(model, STATES, draws=3, generator=seeded(2))) == model.is_exact
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training


def test_an_exact_model_gives_its_log_probability_in_every_draw() -> None:
    model = arm()
    expected = model.log_prob(STATES).detach().double().expand(2, -1)
    torch.testing.assert_close(bound(model, STATES, draws=2), expected)


def test_the_mean_of_the_draws_is_the_bound_by_enumeration() -> None:
    model = diffusion()
    with torch.no_grad():
        expected = analytic_elbo(model)
    draws = bound(model, STATES, draws=8000, generator=seeded(0))
    # the draws of an example are spread over the times, so that their mean varies less than that of independent draws
    assert bool(((draws.mean(0) - expected).abs() < 4.5 * draws.std(0) / 8000**0.5).all())


def test_the_times_of_an_example_are_spread_evenly() -> None:
    """With as many draws as times every time comes up once."""
    for noise in (UniformNoise(K, cosine_schedule(T)), ContinuousUniformNoise(K)):
        seen: list[Tensor] = []

        class Net(TableNet):
            def forward(self, z: Tensor, time: Tensor, seen: list[Tensor] = seen) -> Tensor:
                seen.append(time.clone())
                return super().forward(z, torch.ones_like(time))

        model = Diffusion(Net(K, L, 0), noise=noise, event_shape=(L,))
        bound(model, STATES, draws=T, generator=seeded(0))
        times = torch.stack(seen)  # (T, B)
        if noise.num_steps:
            expected = torch.arange(1, T + 1) / T
            assert torch.equal(times.sort(dim=0).values, expected.unsqueeze(1).expand(T, len(STATES)))
        else:
            at = noise.schedule.time_of(times.double()).sort(dim=0).values
            parts = (at * T - 1e-9).floor().clamp(min=0)
            assert torch.equal(parts, torch.arange(T).double().unsqueeze(1).expand(T, len(STATES)))


def test_given_positions_are_used() -> None:
    model = diffusion()
    positions = torch.full((2, len(STATES)), 0.6, dtype=torch.float64)
    drawn = bound(model, STATES, draws=2, positions=positions, generator=seeded(3))
    generator = seeded(3)
    with torch.no_grad():
        for row in drawn:
            expected = model.times.elbo_at(STATES, positions[0], generator)
            torch.testing.assert_close(row, expected.double())


def test_importance_weights_reach_the_probability_and_memory_does_not_matter() -> None:
    model = Diffusion(NoTime(K, L, 0, num_input_classes=K + 1), noise=MaskCountNoise(K), event_shape=(L,))
    with torch.no_grad():
        orders = [model.log_prob_of_order(STATES, torch.tensor(order)) for order in ((0, 1), (1, 0))]
    p = torch.stack(orders).exp().mean(0)
    value, variance = importance_bound(model, STATES, 4000, rows=900, generator=seeded(0))
    assert value.dtype == variance.dtype == torch.float64
    assert bool(((value - p.log()).abs() < 5 * variance.sqrt() + 1e-9).all())
    told: list[float] = []
    importance_bound(model, STATES, 10, rows=4 * len(STATES), generator=seeded(0), advance=told.append)
    assert told == [4 * 9, 4 * 9, 2 * 9]
    one = importance_bound(model, STATES, 1, rows=1, generator=seeded(5))[0]
    with torch.no_grad():
        torch.testing.assert_close(one, model.log_weight(STATES, generator=seeded(5)).double())


def test_the_upper_bound_has_the_mean_that_enumeration_gives_and_lies_above_the_likelihood() -> None:
    model = Diffusion(NoTime(K, L, 0, num_input_classes=K + 1), noise=MaskCountNoise(K), event_shape=(L,))
    with torch.no_grad():
        w = torch.stack([model.log_prob_of_order(STATES, torch.tensor(order)) for order in ((0, 1), (1, 0))]).double()
    log_p = torch.logsumexp(w, dim=0) - math.log(2)
    # two draws: the first chooses a, the second is weighed, and the other way round
    expected = torch.stack([w[i] + torch.expm1(w[j] - w[i]) for i in (0, 1) for j in (0, 1)]).mean(dim=0)
    draws = torch.stack([weight_sums(model, STATES, 2, rows=100, generator=seeded(n)).upper for n in range(600)])
    error = draws.std(dim=0) / 600**0.5
    assert bool(((draws.mean(dim=0) - expected).abs() < 4.5 * error + 1e-9).all())
    assert bool((expected > log_p).all())
    assert not bool((draws > log_p).all())  # only its mean is above
    many = weight_sums(model, STATES, 4000, rows=100, generator=seeded(0))
    torch.testing.assert_close(many.upper, log_p, atol=0.1, rtol=0)
    assert bool((many.lower < many.upper).all())


@pytest.mark.parametrize("form", ["plain", "ends"])
def test_factors_give_closer_bounds_than_whole_weights(form: str) -> None:
    model, x = built(form, 2), examples(form)
    log_p = model.log_prob_of_random_order(x)
    parts = [weight_sums(model, x, 16, rows=200, generator=seeded(n)) for n in range(60)]
    for name, sign in (("lower", 1), ("upper", -1)):
        found = torch.stack([getattr(sums, name) for sums in parts])
        assert bool((sign * (log_p - found.mean(dim=0)) > -4.5 * found.std(dim=0) / 60**0.5).all())
    assert model.weight_factors is not None
    found = model.weight_factors(x, generator=seeded(0))
    torch.testing.assert_close(found.sum(dim=1), model.log_weight(x, generator=seeded(0)))
    assert found.shape == (len(x), 3)


def test_uneven_weights_are_told_from_even_ones() -> None:
    even = torch.zeros(400, 1, 2, dtype=torch.float64)
    odd = even.clone()
    odd[7, 0, 1] = 6.0
    for w, effective, share in ((even, 400.0, 1 / 400), (odd, None, None)):
        halves = torch.stack([torch.logsumexp(part, dim=0) for part in w.split(200)])
        sums = WeightSums(halves, torch.logsumexp(2 * w, dim=0), w.amax(dim=0), 400)
        p = torch.softmax(w[:, 0, 1], dim=0)
        assert float(sums.effective) == pytest.approx(effective or float(1 / p.square().sum()))
        assert float(sums.share) == pytest.approx(share or float(p.max()))


class NoTime(TableNet):
    """A table of logits that does not depend on the time."""

    reads_time = False

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return super().forward(z, torch.ones_like(time))


def test_a_model_without_weights_is_refused() -> None:
    model = Diffusion(TableNet(K, L, 0), noise=ContinuousUniformNoise(K), event_shape=(L,))
    with pytest.raises(ValueError, match="Diffusion has no importance weights; use its elbo"):
        importance_bound(model, STATES, 4, rows=100)
