"""Likelihoods of orders: the same with the logits of all positions and with those of the drawn one alone."""

import itertools
import math

import pytest
import torch
from torch import Tensor

from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.evaluate.enumeration import every_example
from unordinal.models import ordering
from unordinal.models.diffusion import Diffusion
from unordinal.nets.sequence import DenoisingTransformer

K, L = 2, 4


def masked_model(*, ends: bool) -> Diffusion:
    torch.manual_seed(0)
    net = DenoisingTransformer(
        K, num_input_classes=K + 1 + ends, pad=K if ends else None, width=8, num_blocks=1, num_heads=2
    )
    for weights in net.parameters():
        torch.nn.init.normal_(weights, std=0.6)
    lengths = [[1, 2, 3, 4, 5]] if ends else ()
    return Diffusion(net, noise=MaskCountNoise(K, ends=ends), event_shape=(L,), lengths=lengths).double().eval()


@torch.no_grad()
def of_all_orders(model: Diffusion, x: Tensor) -> Tensor:
    return torch.stack([model.log_prob_of_order(x, torch.tensor(o)) for o in itertools.permutations(range(L))])


@pytest.mark.parametrize("ends", [False, True])
def test_the_drawn_position_alone_gives_the_same(ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = masked_model(ends=ends), every_example(K, L, ends=ends)
    found = of_all_orders(model, x)
    monkeypatch.setattr(ordering, "can_choose", lambda *_: False)
    torch.testing.assert_close(of_all_orders(model, x), found)
    mean = torch.logsumexp(found, dim=0) - math.log(len(found))
    torch.testing.assert_close(mean.exp().sum(), torch.tensor(1.0, dtype=torch.float64))


def test_given_positions_are_not_counted() -> None:
    model, x = masked_model(ends=False), every_example(K, L)
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():
        rest = model.log_prob_of_order(x, order, num_given=2)
    for known in itertools.product(range(K), repeat=2):
        fits = (x[:, 2] == known[0]) & (x[:, 0] == known[1])
        torch.testing.assert_close(rest[fits].exp().sum(), torch.tensor(1.0, dtype=torch.float64))


def test_what_is_no_order_is_refused() -> None:
    model, x = masked_model(ends=False), every_example(K, L)
    with pytest.raises(ValueError, match="an order has each of the 4 positions once"):
        model.log_prob_of_order(x, torch.tensor([0, 1, 1, 2]))
