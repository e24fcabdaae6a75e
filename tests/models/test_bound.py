"""Draws of bounds: their shape, their mean by enumeration, and what their random numbers depend on."""

import pytest
import torch
from contracts import TableNet, all_events, analytic_elbo
from torch import Tensor, nn

from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.bound import bound, importance_bound
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


class NoTime(TableNet):
    """A table of logits that does not depend on the time."""

    reads_time = False

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return super().forward(z, torch.ones_like(time))


def test_a_model_without_weights_is_refused() -> None:
    model = Diffusion(TableNet(K, L, 0), noise=ContinuousUniformNoise(K), event_shape=(L,))
    with pytest.raises(ValueError, match="Diffusion has no importance weights; use its elbo"):
        importance_bound(model, STATES, 4, rows=100)
