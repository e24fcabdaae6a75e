"""Schedules, compared with their formulas."""

import math

import pytest
import torch

from unordinal.diffusion.schedules import Curve, Schedule, cosine, cosine_schedule, linear


@pytest.mark.parametrize("num_steps", [1, 2, 100, 1000, 4000])
def test_cosine_equals_that_of_the_paper_except_for_the_floor(num_steps: int) -> None:
    schedule = cosine_schedule(num_steps)
    log_alpha = schedule.log_alpha(torch.arange(num_steps + 1))
    assert schedule.num_steps == num_steps
    f = [math.cos((t / num_steps + 0.008) / 1.008 * math.pi / 2) for t in range(num_steps + 1)]
    expected = torch.tensor([v / f[0] for v in f], dtype=torch.float64)
    assert log_alpha.dtype == torch.float64
    assert log_alpha[0] == 0
    assert (log_alpha.diff() < 0).all()
    torch.testing.assert_close(log_alpha.exp()[:-1], expected[:-1], rtol=1e-10, atol=0)
    assert 0 < float(log_alpha[-1].exp()) < 0.05
    assert float(log_alpha.diff().min().exp()) == pytest.approx(math.sqrt(1e-3), rel=1e-9)


def test_no_steps_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one step, got 0"):
        cosine_schedule(0)


STEPS = torch.arange(0, 13)


@pytest.mark.parametrize("curve", [linear, cosine])
def test_steps_lie_on_the_curve(curve: Curve) -> None:
    continuous, discrete = Schedule(curve), Schedule(curve, 12)
    torch.testing.assert_close(discrete.noise(STEPS), continuous.noise(STEPS / 12))
    torch.testing.assert_close(discrete.log_alpha(STEPS[:-1]).exp(), 1 - discrete.noise(STEPS[:-1]))
    assert float(discrete.log_alpha(torch.tensor(12))) == -math.inf  # everything is noise in the end
    assert discrete.noise(STEPS).dtype == torch.float64
    assert float(discrete.noise(STEPS)[0]) == 0
    assert float(discrete.noise(STEPS)[-1]) == 1


def test_a_table_is_a_schedule() -> None:
    table = torch.tensor([0.0, -0.1, -1.0, -5.0])
    schedule = Schedule.of_table(table)
    assert schedule.num_steps == 3
    torch.testing.assert_close(schedule.log_alpha(torch.tensor([3, 1])), table.double()[[3, 1]])
    torch.testing.assert_close(schedule.noise(torch.tensor([2])), torch.tensor([1 - math.exp(-1)], dtype=torch.float64))


@pytest.mark.parametrize(
    ("curve", "slope"),
    [
        (linear, torch.ones_like),
        (cosine, lambda t: math.pi / 2 * torch.sin(math.pi / 2 * t)),
        (lambda t: t.square(), lambda t: 2 * t),
    ],
)
def test_the_slope_is_the_derivative(curve: Curve, slope: Curve) -> None:
    t = torch.tensor([1e-9, 0.1, 0.4999, 0.5001, 0.9, 1.0], dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(Schedule(curve).slope(t), slope(t), rtol=1e-9, atol=1e-12)


def test_the_cosine_curve_has_all_its_digits_near_0() -> None:
    t = torch.tensor([1e-12, 1e-6, 0.3, 0.7, 1.0], dtype=torch.float64)
    expected = [(math.pi * v) ** 2 / 8 if v < 1e-3 else 1 - math.cos(math.pi * v / 2) for v in t.tolist()]
    torch.testing.assert_close(cosine(t), torch.tensor(expected, dtype=torch.float64), rtol=1e-9, atol=0)


@pytest.mark.parametrize(
    "schedule", [Schedule(linear, 12), Schedule(cosine, 12), Schedule(cosine, 1), cosine_schedule(12)]
)
def test_the_step_of_a_noise_is_the_one_whose_noise_is_nearest(schedule: Schedule) -> None:
    assert schedule.num_steps is not None
    steps = torch.arange(1, schedule.num_steps + 1)
    assert torch.equal(schedule.time_of(schedule.noise(steps)), steps)
    wanted = torch.linspace(0, 1, 101, dtype=torch.float64)
    found = schedule.time_of(wanted)
    for noise, step in zip(wanted, found, strict=True):
        distance = (schedule.noise(steps) - noise).abs()
        assert float(distance[step - 1]) == float(distance.min())
    grid = wanted[:100].view(2, 50)
    assert torch.equal(schedule.time_of(grid), found[:100].view(2, 50))  # of any shape


@pytest.mark.parametrize("curve", [linear, cosine])
def test_the_time_of_a_noise_is_the_inverse_of_the_curve(curve: Curve) -> None:
    schedule, t = Schedule(curve), torch.tensor([1e-6, 0.1, 0.5, 0.9, 1.0], dtype=torch.float64)
    torch.testing.assert_close(schedule.time_of(schedule.noise(t)), t, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("curve", "message"),
    [
        (lambda t: 0.5 * t, "got 0 at 0 and 0.5 at 1"),
        (lambda t: t + 0.1, "got 0.1 at 0 and 1.1 at 1"),
        (lambda t: t.round(), "must rise"),
    ],
)
def test_a_function_that_is_no_curve_is_refused(curve: Curve, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schedule(curve)
    with pytest.raises(ValueError, match="at least one step, got 0"):
        Schedule(linear, 0)
