"""Draws of times, compared with their distributions."""

import pytest
import torch

from unordinal.diffusion.times import TimeSampler, spread_positions


@pytest.mark.parametrize("method", ["uniform", "importance", "stratified", "stratified-importance"])
def test_draws_follow_the_probabilities(method: str) -> None:
    torch.manual_seed(0)
    sampler = TimeSampler(8, method)
    for _ in range(20):
        t = torch.arange(1, 9)
        sampler.observe(t, t.float() ** 2)
    q = sampler.probabilities()
    assert float(q.sum()) == pytest.approx(1)
    assert (q.max() > 2 * q.min()) == ("importance" in method)
    num, batch = 4000, 16
    counts = sum(torch.bincount(sampler.draw(batch), minlength=9)[1:] for _ in range(num))
    assert isinstance(counts, torch.Tensor)
    error = (q * (1 - q) / (num * batch)).sqrt()
    assert ((counts / (num * batch) - q).abs() < 4.5 * error).all()


def test_importance_is_the_root_of_the_mean_square() -> None:
    sampler = TimeSampler(4, "importance")
    scale = torch.tensor([1.0, 2.0, 4.0, 8.0])
    for _ in range(12):
        sampler.observe(torch.tensor([1, 2, 3, 4]), scale)
    expected = torch.tensor([2.0, 2.0, 4.0, 8.0], dtype=torch.float64)  # the first time uses the estimate of the second
    torch.testing.assert_close(sampler.probabilities(), expected / expected.sum(), rtol=0, atol=2e-3)


def test_importance_is_uniform_until_every_time_was_observed() -> None:
    sampler = TimeSampler(4, "importance")
    for _ in range(50):
        sampler.observe(torch.tensor([1, 2, 3]), torch.ones(3))
    assert sampler.probabilities().tolist() == [0.25] * 4


def test_losses_of_equal_times_are_averaged() -> None:
    sampler = TimeSampler(2, "importance")
    sampler.observe(torch.tensor([1, 1, 2]), torch.tensor([1.0, 3.0, 2.0]))
    assert sampler.mean_square.tolist() == [5.0, 4.0]
    assert sampler.count.tolist() == [2, 1]


def test_stratified_batches_cover_time_evenly() -> None:
    sampler = TimeSampler(100, "stratified")
    for _ in range(20):
        t = sampler.draw(10)
        assert sorted(((t - 1) // 10).unique().tolist()) == list(range(10))


@pytest.mark.parametrize(("num", "repeats"), [(10, 1), (7, 3), (5, 20)])
def test_spread_times_are_even_over_examples_and_uniform(num: int, repeats: int) -> None:
    steps = num * repeats
    seen = torch.zeros(num, steps)
    for seed in range(400):
        position, rank = spread_positions(num, repeats, torch.Generator().manual_seed(seed))
        t = (position * steps).floor().long() + 1
        assert sorted(t.flatten().tolist()) == list(range(1, steps + 1))  # every time exactly once
        assert sorted(rank.tolist()) == list(range(num))
        seen[torch.arange(num).repeat_interleave(repeats), t.flatten() - 1] += 1
    expected = 400 * repeats / steps
    assert ((seen - expected).abs() < 5 * expected**0.5 + 1).all()


def test_estimates_are_restored() -> None:
    sampler, again = TimeSampler(4, "importance"), TimeSampler(4, "importance")
    for _ in range(12):
        sampler.observe(torch.tensor([1, 2, 3, 4]), torch.tensor([1.0, 2.0, 4.0, 8.0]))
    again.restore(sampler.state())
    assert torch.equal(again.probabilities(), sampler.probabilities())
    sampler.observe(torch.tensor([2]), torch.tensor([100.0]))
    assert not torch.equal(again.probabilities(), sampler.probabilities())  # they share no memory


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown times 'importanse'; did you mean importance"):
        TimeSampler(4, "importanse")
