"""A step's random numbers are its own."""

import numpy as np
import pytest
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


Numbers = tuple[int, int, int]
# Pairs of streams whose seeds agree in the 32 bits that torch's CPU generator keeps of a seed: the first of 400,000.
COLLISIONS = [((0, 1978, 1), (0, 27803, 1)), ((0, 7896, 1), (0, 41278, 2)), ((0, 50699, 0), (0, 55170, 0))]


@pytest.mark.parametrize(("first", "second"), COLLISIONS)
def test_streams_are_told_apart_by_more_than_32_bits(first: Numbers, second: Numbers) -> None:
    seeds = [mixed_seed(*numbers) for numbers in (first, second)]
    assert seeds[0] != seeds[1]
    plain = [torch.rand(8, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    assert torch.equal(plain[0], plain[1])  # what a seed alone would give
    drawn = [torch.rand(8, generator=generator_of(*numbers)) for numbers in (first, second)]
    assert not torch.equal(drawn[0], drawn[1])
    assert len({*drawn[0].tolist(), *drawn[1].tolist()}) > 12


def test_no_two_of_many_streams_begin_alike() -> None:
    """Two of n streams of 48 bits each agree with a probability of about n^2 / 2^49: 1e-6 for 20,000."""
    generator = torch.Generator()
    begins = set()
    for step in range(5000):
        for index in range(4):
            state = generator_of(0, step, index).get_state()
            generator.set_state(state)
            begins.add(tuple(torch.randint(1 << 24, (2,), generator=generator).tolist()))
    assert len(begins) == 20_000


def test_a_filled_generator_is_uniform_and_normal_like_any_other() -> None:
    """The state is set whole, so that a mistake in it would show: in moments, in bits and in the next twist."""
    generator = generator_of(1, 2, 3)
    u = torch.rand(100_000, generator=generator, dtype=torch.float64)  # far beyond the 624 words
    assert abs(float(u.mean()) - 0.5) < 5 * (1 / 12 / 1e5) ** 0.5
    counts = torch.bincount((u * 64).long(), minlength=64).double()
    assert float(((counts - 1e5 / 64) ** 2 / (1e5 / 64)).sum()) < 63 + 5 * (2 * 63) ** 0.5
    z = torch.randn(100_000, generator=generator)
    assert abs(float(z.mean())) < 5 / 1e5**0.5
    assert abs(float(z.std()) - 1) < 0.02
    bits = torch.randint(1 << 32, (20_000,), generator=generator)
    for place in range(32):
        assert abs(float((bits >> place & 1).double().mean()) - 0.5) < 5 * 0.5 / 20_000**0.5


def test_the_words_of_a_stream_are_those_of_its_sequence() -> None:
    """The first draw comes from the first twist of 624 words, as the Mersenne twister defines it."""
    words = np.random.SeedSequence([4, 5, 6]).generate_state(624, np.uint32).astype(np.uint32)
    words[0] |= np.uint32(1 << 31)
    reference = np.random.MT19937()
    reference.state = {"bit_generator": "MT19937", "state": {"key": words, "pos": 624}}
    expected = [int(value) % (1 << 16) for value in reference.random_raw(2000)]
    assert torch.randint(1 << 16, (2000,), generator=generator_of(4, 5, 6)).tolist() == expected


def test_large_numbers_are_seeds_too() -> None:
    for seed in (0, 1, 2**32, 2**63 - 1):
        first, second = (torch.rand(3, generator=generator_of(seed, index=index)) for index in (0, 1))
        assert not torch.equal(first, second)
