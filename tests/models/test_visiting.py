"""Visits: their probabilities are the model's own, in the order in which positions are visited."""

import math

import numpy as np
import pytest
import torch
from forms import COLUMNS, built
from torch import Tensor

from unordinal.model import CategoricalModel
from unordinal.models.tree import TreeModel
from unordinal.models.visiting import distant_groups
from unordinal.recipes import constructors


def visited(model: CategoricalModel, x: Tensor, **settings: int) -> tuple[Tensor, Tensor]:
    """Return the log-probability (N,) of examples as the sum over visits, and the places in their order."""
    assert model.visits is not None
    visits, flat = model.visits(len(x), **settings), x.flatten(1)
    visit, total, places = next(visits), torch.zeros(len(x), dtype=torch.float64), []
    while True:
        there = flat[:, visit.places]
        total += torch.log_softmax(visit.logits, dim=-1).gather(-1, there.unsqueeze(-1)).sum(dim=(1, 2))
        places.append(visit.places)
        try:
            visit = visits.send(there)
        except StopIteration:
            return total, torch.cat(places)


@torch.no_grad()
def test_autoregressive_models_are_visited_with_their_likelihood() -> None:
    for order in ("given", "any"):
        model = built("arm", "columns", order=order)
        x = model.sample(20, generator=torch.Generator().manual_seed(0))
        total, places = visited(model, x)
        assert places.tolist() == list(range(len(COLUMNS)))
        expected = model.elbo(x) if model.orders is None else model.orders(x, places)
        torch.testing.assert_close(total, expected)


def test_trees_are_visited_from_their_roots() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 200)
    rows = np.stack([first, (first + (rng.random(200) < 0.1)) % 3, rng.integers(0, 1, 200), first], axis=1)
    model = TreeModel(COLUMNS, (len(COLUMNS),), has_edges=True)
    model.hooks.count(rows, rows)
    x = torch.from_numpy(rows)
    total, places = visited(model, x)
    torch.testing.assert_close(total.float(), model.log_prob(x).float())
    assert sorted(places.tolist()) == [0, 1, 2, 3]


@torch.no_grad()
def test_diffusions_are_visited_in_groups_whose_probabilities_sum_to_one() -> None:
    model = constructors.absorbing(2, height=2, width=2, **{"net.width": 8, "net.num_levels": 1}).double().eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.3)
    every = torch.cartesian_prod(*[torch.arange(2)] * 4).view(-1, 2, 2)
    for calls in (1, 4):
        total, places = visited(model, every, calls=calls)
        assert float(total.exp().sum()) == pytest.approx(1)
        assert sorted(places.tolist()) == [0, 1, 2, 3]
    assert model.orders is not None
    total, places = visited(model, every, calls=4)  # one position in each call is an order
    torch.testing.assert_close(total, model.orders(every, places).double())


@pytest.mark.parametrize(("shape", "calls"), [((32, 64), 64), ((7,), 3), ((5, 6), 9), ((4,), 100), ((3, 3), 1)])
def test_groups_hold_every_position_once_and_far_apart(shape: tuple[int, ...], calls: int) -> None:
    groups = distant_groups(shape, calls)
    assert sorted(place for group in groups for place in group) == list(range(math.prod(shape)))
    stride = max(1, round(calls ** (1 / len(shape))))
    for group in groups:
        places = [np.unravel_index(place, shape) for place in group]
        for a in places[:10]:
            assert all(max(abs(int(i) - int(j)) for i, j in zip(a, b, strict=True)) >= stride for b in places if a != b)
