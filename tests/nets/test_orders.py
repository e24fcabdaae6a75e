"""The Transformer of any order: a place sees those before it in the order and no others."""

import itertools

import pytest
import torch
from torch import nn

from unordinal.nets.orders import OrderTransformer


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@torch.no_grad()
def test_a_place_depends_on_those_before_it_in_the_order(order: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    net = OrderTransformer(3, 3, width=8, num_blocks=2, num_heads=2, conv=3).double()
    for p in net.parameters():
        nn.init.normal_(p, std=0.5)
    x = torch.tensor([[0, 1, 2]])
    places = torch.tensor([order])
    before = net(x, places)
    for changed in range(3):
        y = x.clone()
        y[0, changed] = (y[0, changed] + 1) % 3
        moved = (net(y, places) - before).abs().amax(-1)[0] > 1e-12
        after = [order.index(place) > order.index(changed) for place in range(3)]
        assert moved.tolist() == after
