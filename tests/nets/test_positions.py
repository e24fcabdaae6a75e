"""Logits of some positions alone: the same numbers, losses and gradients as from logits of all positions."""

from typing import Any

import pytest
import torch
from blocks import built, examples
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
from unordinal.model import CategoricalModel
from unordinal.models import blockwise, diffusion
from unordinal.models.diffusion import Diffusion
from unordinal.nets.positions import can_choose
from unordinal.nets.sequence import DenoisingTransformer

K, L = 3, 6


def masked_model(*, count: bool, ends: bool, complementary: bool = False) -> Diffusion:
    torch.manual_seed(0)
    net = DenoisingTransformer(
        K, num_input_classes=K + 1 + ends, pad=K if ends else None, width=8, num_blocks=1, num_heads=2, labels=(2,)
    )
    for weights in net.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    noise = (MaskCountNoise if count else AbsorbingNoise)(K, ends=ends)
    return Diffusion(net, noise=noise, event_shape=(L,), labels=(2,), complementary=complementary).double()


def losses(model: CategoricalModel, x: Tensor, cond: Tensor | None) -> tuple[Tensor, Tensor, list[Tensor]]:
    torch.manual_seed(3)
    loss = model.training_loss(x, cond=cond)
    with torch.no_grad():
        bound = model.elbo(x, cond=cond, generator=torch.Generator().manual_seed(4))
    return loss, bound, list(torch.autograd.grad(loss.sum(), list(model.parameters()), allow_unused=True))


@pytest.mark.parametrize("form", ["plain", "ends", "labels"])
def test_losses_and_gradients_are_those_of_all_positions(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randint(K, (5, L), generator=torch.Generator().manual_seed(0))
    ended = torch.where(torch.arange(L) >= torch.tensor([[6], [4], [1], [0], [3]]), K, x)
    cond = torch.tensor([[0], [1], [2], [2], [0]])
    cases: list[tuple[Any, Tensor, Tensor | None]] = [
        (masked_model(count=True, ends=form == "ends"), ended if form == "ends" else x, cond),
        (masked_model(count=False, ends=form == "ends"), ended if form == "ends" else x, cond),
        (masked_model(count=True, ends=False, complementary=True), x, cond),
        (built(form, 2), examples(form), torch.tensor([[1, 2]]).expand(len(examples(form)), -1)),
    ]
    for model, given, every in cases:
        labels = every if model.labels else None
        found = losses(model, given, labels)
        with monkeypatch.context() as patch:
            for module in (blockwise, diffusion):
                patch.setattr(module, "can_choose", lambda *_: False)
            expected = losses(model, given, labels)
        torch.testing.assert_close(found[:2], expected[:2])
        for own, other in zip(found[2], expected[2], strict=True):
            assert (own is None) == (other is None)
            torch.testing.assert_close(own, other)


def test_only_plain_networks_on_a_cpu_choose() -> None:
    net = DenoisingTransformer(K, width=8, num_blocks=1, num_heads=2)
    z = torch.zeros(2, L, dtype=torch.long)
    at = torch.tensor([[True, False, True, False, False, True], [False] * 6])
    assert can_choose(net, z)
    torch.testing.assert_close(net(z, at=at), net(z)[at])
    assert not can_choose(net, z.to("meta"))
    assert not can_choose(DenoisingTransformer(K, width=8, num_blocks=1, num_heads=2, length=L), z)
    assert not can_choose(torch.nn.Identity(), z)
    net.compile()
    assert not can_choose(net, z)
