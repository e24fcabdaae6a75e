"""Choices of positions: everyone's probability is kept, and chosen ones are far apart."""

import pytest
import torch

from unordinal.diffusion.choosing import curve_order, far_apart, independent


@pytest.mark.parametrize("choose", [independent, far_apart])
def test_every_position_keeps_its_probability(choose: object) -> None:
    assert callable(choose)
    p = torch.tensor([0.0, 0.9, 0.05, 0.3, 1.0, 0.6, 0.15, 0.0])
    chosen = choose(p.expand(40_000, -1), torch.Generator().manual_seed(0)).double()
    error = (p * (1 - p) / 40_000).sqrt().clamp(min=1e-12)
    assert bool(((chosen.mean(0) - p).abs() < 4.5 * error + 1e-9).all())


def test_positions_are_far_apart_and_as_many_as_expected() -> None:
    chosen = far_apart(torch.full((1000, 64), 1 / 16), torch.Generator().manual_seed(0))
    assert bool((chosen.sum(1) == 4).all())
    places = torch.nonzero(chosen)[:, 1].view(1000, 4)
    assert int(places.diff(dim=1).min()) >= 15  # sixteen, up to rounding at the edges of a stretch


def test_positions_of_maps_are_far_apart_in_both_directions() -> None:
    chosen = far_apart(torch.full((200, 16, 32), 1 / 64), torch.Generator().manual_seed(0))
    assert bool((chosen.flatten(1).sum(1) == 8).all())
    for rows in chosen:
        at = torch.nonzero(rows).double()
        apart = torch.cdist(at, at, p=float("inf")) + 100 * torch.eye(8, dtype=torch.float64)
        assert float(apart.min()) >= 4


def test_a_curve_visits_every_position_once() -> None:
    for shape in ((7,), (5, 3), (16, 32), (2, 3, 5)):
        order = curve_order(torch.Size(shape), torch.device("cpu"))
        assert sorted(order.tolist()) == list(range(torch.Size(shape).numel()))
