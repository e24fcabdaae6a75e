"""Uniform noise in continuous time, compared with Bayes' rule and with many discrete steps."""

import pytest
import torch
from contracts import TableNet, all_events, check_process

from unordinal.diffusion.continuous import ContinuousUniformNoise, noise_of_rate
from unordinal.diffusion.schedules import NoiseCurve, cosine_noise, linear_noise
from unordinal.diffusion.uniform import UniformNoise
from unordinal.models.diffusion import Diffusion

PAIRS: list[tuple[float, float]] = [(0.25, 0.125), (0.5, 0.0), (0.95, 0.75), (1.0, 0.25)]


@pytest.mark.parametrize("output", UniformNoise.OUTPUTS)
@pytest.mark.parametrize("curve", [linear_noise, cosine_noise])
def test_the_contract(curve: NoiseCurve, output: str) -> None:
    check_process(ContinuousUniformNoise(3, curve, output=output), PAIRS)


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
    noise = UniformNoise(k, torch.log1p(-cosine_noise(times).clamp(max=1 - 1e-12)))
    states, net, t = all_events(k, (2,)), TableNet(k, 2, 0), torch.arange(1, num + 1)
    totals = torch.zeros(len(states), dtype=torch.float64)
    for row, x in enumerate(states):
        rows = x.expand(num, -1)
        for z in states:
            noisy = z.expand(num, -1)
            weight = noise.marginal(rows, t)[:, torch.arange(2), z].prod(-1)
            totals[row] += (weight * noise.loss(net(noisy, torch.ones(num)), rows, noisy, t)).sum()
    torch.testing.assert_close(-totals, integrated(ContinuousUniformNoise(k, cosine_noise)), rtol=1e-3, atol=0)


@torch.no_grad()
def test_the_bound_does_not_depend_on_the_schedule_and_lies_below_log_p() -> None:
    linear, cosine = (integrated(ContinuousUniformNoise(3, curve)) for curve in (linear_noise, cosine_noise))
    torch.testing.assert_close(linear, cosine, rtol=1e-3, atol=1e-3)
    noise = ContinuousUniformNoise(3)
    model = Diffusion(TableNet(3, 2, 0), noise=noise, event_shape=(2,))
    torch.manual_seed(0)
    states = all_events(3, (2,))
    draws = torch.stack([model.elbo(states.repeat(200, 1)).view(200, -1) for _ in range(100)]).flatten(0, 1)
    assert bool(((draws.mean(0) - linear).abs() < 4.5 * draws.std(0) / len(draws) ** 0.5 + 2e-3).all())
    assert float(linear.exp().sum()) <= 1 + 1e-3


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
    t = torch.tensor([noise_of_rate(rate, 5)])
    assert float(noise.marginal(torch.zeros(1, 1, dtype=torch.long), t)[0, 0, 0]) == pytest.approx(1 - rate)
    for wrong in (0.0, 0.9, float("nan")):
        with pytest.raises(ValueError, match="a rate of errors must be above 0"):
            noise_of_rate(wrong, 5)
