"""Uniform noise in continuous time, compared with Bayes' rule, with many discrete steps and with rates of jumps."""

import itertools

import pytest
import torch
from contracts import TableNet, all_events, check_process
from torch import Tensor

from unordinal.diffusion.continuous import ContinuousUniformNoise, noise_of_rate
from unordinal.diffusion.schedules import Curve, Schedule, cosine, cosine_schedule, linear
from unordinal.diffusion.uniform import UniformNoise
from unordinal.models.diffusion import Diffusion

PAIRS: list[tuple[float, float]] = [(0.25, 0.125), (0.5, 0.0), (0.95, 0.75), (1.0, 0.25)]


@pytest.mark.parametrize("curve", [linear, cosine])
def test_the_contract(curve: Curve) -> None:
    check_process(ContinuousUniformNoise(3, Schedule(curve)), PAIRS)


def integrated(noise: ContinuousUniformNoise, num: int = 4000) -> torch.Tensor:
    """The bound of every x of two positions under a fixed table, by the midpoint rule over time: (S,)."""
    states = all_events(noise.num_classes, (2,))
    net = TableNet(noise.num_classes, 2, 0)
    total = torch.zeros(len(states), dtype=torch.float64)
    t = (torch.arange(num, dtype=torch.float64) + 0.5) / num
    for row, x in enumerate(states):
        rows = x.expand(num, -1)
        for z in states:
            noisy = z.expand(num, -1)
            weight = noise.marginal(rows, t)[:, torch.arange(2), z].prod(-1)
            logits = noise.predicted(net(noisy, torch.ones(num)), noisy, t)
            total[row] += (weight * noise.loss(logits, rows, noisy, t)).mean()
    return -total


@torch.no_grad()
def test_the_bound_is_the_limit_of_discrete_steps() -> None:
    """T = 10^4 steps of the same schedule: 1e-3 relative, for every x."""
    k, num = 3, 10_000
    times = torch.arange(num + 1, dtype=torch.float64) / num
    noise = UniformNoise(k, Schedule.of_table(torch.log1p(-cosine(times).clamp(max=1 - 1e-12))))
    states, net, t = all_events(k, (2,)), TableNet(k, 2, 0), torch.arange(1, num + 1)
    totals = torch.zeros(len(states), dtype=torch.float64)
    for row, x in enumerate(states):
        rows = x.expand(num, -1)
        for z in states:
            noisy = z.expand(num, -1)
            weight = noise.marginal(rows, t)[:, torch.arange(2), z].prod(-1)
            totals[row] += (weight * noise.loss(net(noisy, torch.ones(num)), rows, noisy, t)).sum()
    torch.testing.assert_close(-totals, integrated(ContinuousUniformNoise(k)), rtol=1e-3, atol=0)


@torch.no_grad()
def test_the_bound_does_not_depend_on_the_schedule_and_lies_below_log_p() -> None:
    straight, curved = (integrated(ContinuousUniformNoise(3, Schedule(curve))) for curve in (linear, cosine))
    torch.testing.assert_close(straight, curved, rtol=1e-3, atol=1e-3)
    noise = ContinuousUniformNoise(3)
    model = Diffusion(TableNet(3, 2, 0), noise=noise, event_shape=(2,))
    torch.manual_seed(0)
    states = all_events(3, (2,))
    draws = torch.stack([model.elbo(states.repeat(200, 1)).view(200, -1) for _ in range(100)]).flatten(0, 1)
    assert bool(((draws.mean(0) - curved).abs() < 4.5 * draws.std(0) / len(draws) ** 0.5 + 2e-3).all())
    assert float(curved.exp().sum()) <= 1 + 1e-3


@torch.no_grad()
def test_float32_holds_at_both_ends() -> None:
    """A perfect and a wrong prediction, from 1e-9 of noise to 1e-9 of signal, against float64."""
    noise = ContinuousUniformNoise(27)
    t = torch.tensor([1e-9, 1e-4, 0.5, 1 - 1e-4, 1 - 1e-9, 1.0], dtype=torch.float64)
    x = torch.zeros(len(t), 1, dtype=torch.long)
    for z in (x, x + 1):
        for scale in (0.0, 5.0):
            logits = scale * torch.linspace(1, -1, 27, dtype=torch.float64).expand(len(t), 1, 27)
            exact, single = noise.loss(logits, x, z, t), noise.loss(logits.float(), x, z, t)
            assert bool(torch.isfinite(single).all())
            torch.testing.assert_close(single.double(), exact, rtol=1e-4, atol=1e-5)


def test_the_noise_of_a_rate_of_errors() -> None:
    noise, rate = ContinuousUniformNoise(5), 0.2
    t = noise.schedule.time_of(torch.tensor([noise_of_rate(rate, 5)]))
    assert float(noise.marginal(torch.zeros(1, 1, dtype=torch.long), t)[0, 0, 0]) == pytest.approx(1 - rate)
    for wrong in (0.0, 0.9, float("nan")):
        with pytest.raises(ValueError, match="a rate of errors must be above 0"):
            noise_of_rate(wrong, 5)


def by_rates(noise: ContinuousUniformNoise, logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
    """The integrand of the negative bound from the jump rates of the two reverse processes, class by class: (B,).

    A class y of the past becomes z at rate beta / K, so that z came from y at rate beta / K * q(y) / q(z) given the
    data, and at rate beta / K * p(y) / p(z) under the model. The integrand is the KL of two jump processes.
    """
    k, alpha = noise.num_classes, 1 - noise.schedule.noise(t)
    beta = noise.schedule.slope(t) / alpha
    total = torch.zeros(len(x), dtype=torch.float64)
    r = torch.softmax(logits.double(), -1)
    for row, position in itertools.product(range(len(x)), range(x.shape[1])):
        clean = torch.nn.functional.one_hot(x[row, position], k).double()
        q, p = (alpha[row] * start + (1 - alpha[row]) / k for start in (clean, r[row, position]))
        for y in range(k):
            here = int(z[row, position])
            if y != here:
                true, model = (beta[row] / k * v[y] / v[here] for v in (q, p))
                total[row] += model - true + true * (true / model).log()
    return total


@pytest.mark.parametrize("k", [2, 5, 27])
@torch.no_grad()
def test_the_loss_equals_brute_force_and_float32_agrees(k: int) -> None:
    noise, generator = ContinuousUniformNoise(k), torch.Generator().manual_seed(k)
    t = torch.tensor([1e-3, 0.01, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99], dtype=torch.float64)
    x, z = (torch.randint(k, (len(t), 4), generator=generator) for _ in range(2))
    z[:, :2] = x[:, :2]  # half of the positions have kept their class
    for scale in (0.3, 3.0, 10.0):
        logits = scale * torch.randn(len(t), 4, k, generator=generator, dtype=torch.float64)
        expected = by_rates(noise, logits, x, z, t)
        torch.testing.assert_close(noise.loss(logits, x, z, t), expected, rtol=1e-8, atol=1e-8)
        single = noise.loss(logits.float(), x, z, t).double()
        torch.testing.assert_close(single, noise.loss(logits.float().double(), x, z, t), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_perfect_prediction_costs_nothing_in_float32() -> None:
    noise, t = ContinuousUniformNoise(27), torch.linspace(0.01, 1, 50, dtype=torch.float64)
    x = torch.randint(27, (50, 8), generator=torch.Generator().manual_seed(0))
    logits = 60.0 * torch.nn.functional.one_hot(x, 27).float()
    for z in (x, (x + 1) % 27):
        assert float(noise.loss(logits, x, z, t).abs().max()) < 1e-4


@pytest.mark.parametrize("schedule", [Schedule(cosine, 10), cosine_schedule(10)])
def test_discrete_steps_are_refused(schedule: Schedule) -> None:
    with pytest.raises(ValueError, match="needs a schedule in continuous time, made from a curve"):
        ContinuousUniformNoise(3, schedule)
