"""Absorbing noise, compared with Bayes' rule and with the orders in which positions are unmasked."""

import itertools

import pytest
import torch
from contracts import TableNet, all_events, analytic_elbo, check_process
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
from unordinal.diffusion.schedules import Schedule, cosine, cosine_schedule, linear
from unordinal.models.diffusion import Diffusion

K, L = 3, 3
STEPS: list[tuple[float, float]] = [(1, 0), (2, 1), (3, 1), (4, 0), (4, 3)]
PAIRS: list[tuple[float, float]] = [(0.25, 0.125), (0.5, 0.0), (1.0, 0.75), (1.0, 0.0)]
CASES: dict[str, tuple[AbsorbingNoise, list[tuple[float, float]]]] = {
    "continuous": (AbsorbingNoise(K), PAIRS),
    "continuous, linear": (AbsorbingNoise(K, Schedule(linear)), PAIRS),
    "discrete": (AbsorbingNoise(K, Schedule(linear, 4)), STEPS),
    "discrete, cosine": (AbsorbingNoise(K, Schedule(cosine, 4)), STEPS),
    "one step": (AbsorbingNoise(K, Schedule(linear, 1)), [(1, 0)]),
}


@pytest.mark.parametrize("name", CASES)
def test_the_contract(name: str) -> None:
    check_process(*CASES[name])


class NoTime(TableNet):
    """A table of logits that does not depend on the time."""

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return super().forward(z, torch.ones_like(time))


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


@pytest.mark.parametrize(
    ("name", "complementary"), [("linear", False), ("cosine", False), ("count", False), ("count", True)]
)
@torch.no_grad()
def test_all_forms_have_the_expectation_of_random_orders(name: str, complementary: bool) -> None:
    """The bound of a network without time is the mean over orders of log P, whatever the schedule and the form."""
    noises = {"linear": AbsorbingNoise(K, Schedule(linear)), "cosine": AbsorbingNoise(K), "count": MaskCountNoise(K)}
    net = NoTime(K, L, 0, num_input_classes=K + 1)
    model = Diffusion(net, noise=noises[name], event_shape=(L,), complementary=complementary)
    p, bound = by_orders(model)
    assert float(p.sum()) == pytest.approx(1)
    assert bool((bound <= p.log() + 1e-12).all())
    torch.manual_seed(0)
    states = all_events(K, (L,))
    draws = torch.stack([-model.training_loss(states.repeat(100, 1)).view(100, -1) for _ in range(100)]).flatten(0, 1)
    assert bool(((draws.mean(0) - bound).abs() < 4.5 * draws.std(0) / len(draws) ** 0.5 + 1e-3).all())


@torch.no_grad()
def test_counts_and_complements_have_less_variance() -> None:
    net = NoTime(K, L, 0, num_input_classes=K + 1)
    x = all_events(K, (L,))[5:6].repeat(20_000, 1)
    spreads, by_time = [], AbsorbingNoise(K, Schedule(linear))  # with the times of the counts
    for noise, complementary in ((by_time, False), (MaskCountNoise(K), False), (MaskCountNoise(K), True)):
        torch.manual_seed(0)
        model = Diffusion(net, noise=noise, event_shape=(L,), times="uniform", complementary=complementary)
        spreads.append(float(model.training_loss(x).std()))
    assert spreads[0] > 1.1 * spreads[1] > 1.1**2 * spreads[2]


@torch.no_grad()
def test_discrete_steps_approach_continuous_time() -> None:
    """With T = 10^4 the bound of discrete steps equals the integral: 1e-3 relative."""
    net = TableNet(K, 2, 1, num_input_classes=K + 1)
    fine = Diffusion(net, noise=AbsorbingNoise(K, Schedule(cosine, 10_000)), event_shape=(2,))
    x = all_events(K, (2,))
    noise = AbsorbingNoise(K, Schedule(cosine))
    inputs = all_events(K + 1, (2,))
    for t in (0.01, 0.3, 0.7, 0.99):
        step = torch.full((len(x),), round(t * 10_000))
        for z in inputs:
            noisy = z.expand_as(x)
            logits = fine.logits(noisy, step)
            now = torch.full((len(x),), t, dtype=torch.float64)
            expected = noise.loss(logits, x, noisy, now)
            torch.testing.assert_close(10_000 * fine.noise.loss(logits, x, noisy, step), expected, rtol=6e-3, atol=1e-9)
    totals = [sum_over_times(steps, net) for steps in (2_500, 10_000)]
    extrapolated = (4 * totals[1] - totals[0]) / 3
    torch.testing.assert_close(totals[1], extrapolated, rtol=1e-3, atol=0)


def sum_over_times(num_steps: int, net: TableNet) -> Tensor:
    """The exact bound of some x with T steps, on a grid of times."""
    noise = AbsorbingNoise(K, Schedule(cosine, num_steps))
    x = all_events(K, (2,))[:3]
    t = torch.arange(1, num_steps + 1)
    total = torch.zeros(len(x), dtype=torch.float64)
    for z in all_events(K + 1, (2,)):
        for row, one in enumerate(x):
            rows = one.expand(num_steps, -1)
            noisy = z.expand(num_steps, -1)
            weight = noise.marginal(rows, t)[:, torch.arange(2), z].prod(-1)
            losses = noise.loss(net(noisy, noise.network_time(t)), rows, noisy, t)
            total[row] += (weight * losses).sum()
    return total


@torch.no_grad()
def test_the_bound_and_the_importance_weight_of_discrete_steps() -> None:
    noise = AbsorbingNoise(K, Schedule(linear, 3))
    model = Diffusion(TableNet(K, 2, 1, num_input_classes=K + 1), noise=noise, event_shape=(2,))
    states = all_events(K, (2,))
    torch.manual_seed(0)
    weights = torch.stack([model.log_weight(states) for _ in range(4000)])
    p = weights.exp().mean(0)
    error = weights.exp().std(0) / 4000**0.5
    assert float(p.sum()) == pytest.approx(1, abs=float(5 * error.square().sum().sqrt()))
    bound = analytic_elbo(model)
    assert bool((bound <= p.log() + 0.02).all())
    assert bool(((weights.mean(0) - bound).abs() < 5 * weights.std(0) / 4000**0.5).all())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AbsorbingNoise(3, Schedule(lambda t: 0.999 * t)), "to exactly 1 at time 1; got 0 at 0 and 0.999 at 1"),
        (lambda: AbsorbingNoise(3, Schedule(lambda t: 1 - t)), "must rise"),
        (lambda: AbsorbingNoise(3, Schedule(linear, 0)), "at least one step, got 0"),
        (lambda: AbsorbingNoise(3, cosine_schedule(4)), "needs a schedule that ends in noise 1, made from a curve"),
    ],
)
def test_what_cannot_be_is_refused(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
