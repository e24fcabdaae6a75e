"""A step's random numbers are its own."""

import torch

from unordinal.parallel.randomness import generator_of, mixed_seed, seed_step


def test_seeds_of_different_things_are_unrelated() -> None:
    seeds = {mixed_seed(seed, step, index) for seed in range(8) for step in range(8) for index in range(8)}
    assert len(seeds) == 8**3
    assert all(0 <= seed < 2**63 for seed in seeds)
    draws = torch.stack([torch.rand(100, generator=generator_of(0, step, 1)) for step in range(50)])
    off = torch.corrcoef(draws).fill_diagonal_(0).abs().max()
    assert float(off) < 0.5  # 1225 pairs of 100 numbers: five standard deviations


def test_a_thing_of_a_step_draws_the_same_whatever_came_before() -> None:
    seed_step(3, 5, 7)
    first = torch.rand(4)
    torch.rand(1000)
    seed_step(3, 5, 7)
    assert torch.equal(torch.rand(4), first)
    assert torch.equal(torch.rand(4, generator=generator_of(3, 5, 7)), first)
