"""Samplers that show masked positions: which come first, how many at a time, and what the network is asked."""

from typing import Any

import pytest
import torch
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.schedules import Schedule, cosine, linear
from unordinal.diffusion.unmasking import (
    FirstHitting,
    HighestConfidence,
    LowestEntropy,
    SpreadUnmasking,
    Unmasking,
    most_urgent,
)
from unordinal.progress import Watcher, watching

K, L = 4, 6
NOISE = AbsorbingNoise(K)
SHARPNESS = torch.tensor([1.0, 3.0, 0.5, 4.0, 2.0, 0.0])  # how sure the network is of each position
SUREST_FIRST = [3, 1, 4, 0, 2, 5]
KINDS: list[Any] = [FirstHitting, SpreadUnmasking, LowestEntropy, HighestConfidence]


def fixed(z: Tensor, t: Tensor) -> Tensor:
    """Logits that prefer the last class, with a sharpness of their own at each position."""
    return (SHARPNESS.unsqueeze(-1) * torch.tensor([0.0, 0.1, 0.2, 1.0])).expand(len(z), L, K)


def shown_order(sampler: Unmasking, settings: dict[str, Any], seed: int = 0) -> list[list[int]]:
    """Return the positions in the order in which they are shown, for each of some samples."""
    z = torch.full((3, L), K)
    generator, orders = torch.Generator().manual_seed(seed), [[], [], []]  # type: ignore[var-annotated]
    before = z
    for _, after in sampler.chain(Predictor(fixed, **settings), NOISE, z, generator=generator):
        for row, position in torch.nonzero((before == K) & (after != K)).tolist():
            orders[row].append(position)
        before = after
    return orders


@pytest.mark.parametrize("kind", [LowestEntropy, HighestConfidence])
@pytest.mark.parametrize(
    "settings", [{}, {"temperature": 0.0}, {"temperature": 1e-40}, {"top_p": 0.3}, {"greedy_tail": 1.0}]
)
def test_the_surest_position_is_shown_first_however_the_draws_are_sharpened(
    kind: type[Unmasking], settings: dict[str, float]
) -> None:
    """The network's own certainty counts: at temperature 0 all sharpened predictions are equally sure."""
    assert shown_order(kind(), settings) == [SUREST_FIRST] * 3


def test_at_temperature_0_every_position_has_its_likeliest_class() -> None:
    z = torch.full((2, L), K)
    for kind in KINDS:
        *_, (_, x) = kind(3).chain(Predictor(fixed, temperature=0.0), NOISE, z)
        flat = fixed(z, torch.ones(2)).argmax(-1)
        assert torch.equal(x[:, :5], flat[:, :5])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calls", [1, 2, 4, 6])
def test_every_sampler_makes_as_many_calls_as_it_is_given(kind: type[Unmasking], calls: int) -> None:
    with watching(Watcher()) as watcher:
        chain = list(kind(calls).chain(Predictor(fixed), NOISE, torch.full((5, L), K)))
    assert watcher.network_calls == 5 * calls
    assert len(chain) == calls + 1
    assert int(chain[-1][1].max()) < K
    assert kind.whole_calls(NOISE, 17) == 17


def test_ties_are_broken_at_random() -> None:
    """Every set of two of four equal positions comes up equally often; the fifth is not masked."""
    generator = torch.Generator().manual_seed(0)
    num = 12_000
    is_masked = torch.tensor([True, True, False, True, True]).expand(num, 5)
    urgency = torch.tensor([1.0, 1.0 + 1e-7, 9.0, 1.0 - 1e-7, 1.0]).expand(num, 5)  # equal up to rounding
    chosen = most_urgent(urgency, is_masked, torch.full((num,), 2), generator)
    assert bool((chosen.sum(1) == 2).all())
    assert not bool(chosen[:, 2].any())
    counts = torch.bincount((chosen * torch.tensor([1, 2, 0, 4, 8])).sum(1), minlength=16).double()
    pairs = counts[counts > 0] / num
    assert len(pairs) == 6
    assert bool(((pairs - 1 / 6).abs() < 4.5 * (1 / 6 * 5 / 6 / num) ** 0.5).all())


def test_a_clear_difference_is_no_tie() -> None:
    urgency = torch.tensor([[0.1, 0.3, 0.2, 0.4]]).expand(50, 4)
    is_masked = torch.tensor([[True, True, True, False]]).expand(50, 4)
    for num, expected in ((1, [1]), (2, [1, 2]), (3, [0, 1, 2]), (4, [0, 1, 2])):
        chosen = most_urgent(urgency, is_masked, torch.full((50,), num), None)
        assert all(torch.nonzero(row).flatten().tolist() == expected for row in chosen)


@pytest.mark.parametrize("schedule", [Schedule(linear), Schedule(cosine), Schedule(cosine, 12), Schedule(linear, 5)])
def test_the_network_reads_the_time_whose_noise_is_the_share_of_masks(schedule: Schedule) -> None:
    seen: list[float] = []

    def predict(z: Tensor, t: Tensor) -> Tensor:
        seen.extend(schedule.noise(t).tolist())
        return fixed(z, t)

    list(FirstHitting().chain(Predictor(predict), AbsorbingNoise(K, schedule), torch.full((1, L), K)))
    steps = None if schedule.num_steps is None else schedule.noise(torch.arange(1, schedule.num_steps + 1))
    for got, left in zip(seen, range(L, 0, -1), strict=True):
        if steps is None:
            assert got == pytest.approx(left / L)
        else:
            assert abs(got - left / L) == pytest.approx(float((steps - left / L).abs().min()))
