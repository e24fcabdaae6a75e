"""Samplers, compared with the exact distribution of their chain by enumeration."""

import itertools

import pytest
import torch
from contracts import TableNet, all_events, chi_square_p_value, reverse_matrix

from unordinal.diffusion.samplers import Ancestral, last
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.progress import Watcher, watching

K, L, T = 3, 2, 4
NOISE = UniformNoise(K, cosine_schedule(T))
NET = TableNet(K, L, T)


def predict(z: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return NET(z, NOISE.network_time(t))


@pytest.mark.parametrize("steps", [None, 1, 3])
@torch.no_grad()
def test_ancestral_sampling_follows_the_chain(steps: int | None) -> None:
    states, times = all_events(K, (L,)), NOISE.spaced_times(steps)
    p = torch.full((K**L,), 1 / K**L, dtype=torch.float64)
    for t, s in itertools.pairwise(times):
        p = p @ reverse_matrix(NOISE, predict(states, torch.full((len(states),), t)), states, t, s)
    generator = torch.Generator().manual_seed(0)
    z = NOISE.draw_prior((40_000, L), torch.device("cpu"), generator=generator)
    x = last(Ancestral(steps).chain(predict, NOISE, z, generator=generator))
    counts = torch.bincount((x * torch.tensor([K, 1])).sum(1), minlength=K**L).double()
    assert chi_square_p_value(counts, p) > 1e-4
    assert chi_square_p_value(counts, torch.roll(p, 1)) < 1e-4  # the test can fail


@torch.no_grad()
def test_calls_states_and_progress_are_reported_to_the_watcher() -> None:
    seen: list[float] = []
    reported: list[float] = []
    z = torch.zeros(5, L, dtype=torch.long)
    with watching(Watcher(reported.append, lambda t, x: seen.append(t) or None)) as watcher:  # type: ignore[func-returns-value]
        chain = list(Ancestral(3).chain(predict, NOISE, z))
    assert [t for t, _ in chain] == seen == [4, 3, 1, 0]
    assert watcher.network_calls == 3
    assert sum(reported) == pytest.approx(5)  # five complete samples
    assert torch.equal(chain[0][1], z)


@torch.no_grad()
def test_a_chain_may_start_at_a_fraction() -> None:
    z = torch.zeros(2, L, dtype=torch.long)
    assert [t for t, _ in Ancestral(start=0.5).chain(predict, NOISE, z)] == [2, 1, 0]
