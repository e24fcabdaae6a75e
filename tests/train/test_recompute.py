"""Activations that are computed again give the gradients of those that are kept, in less memory."""

import pytest
import torch
from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.recipes import RECIPES, configured
from unordinal.train.recompute import recompute_blocks

SPEC = {"sequences": ((32,), 5), "maps": ((16, 16), 5)}


def gradients(model: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    model(x).sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize(
    ("name", "shape"),
    [("arm", "sequences"), ("multinomial", "sequences"), ("uniform", "maps"), ("absorbing", "sequences")],
)
def test_gradients_are_the_same(name: str, shape: str, spec_of: object = None) -> None:
    event_shape, num_classes = SPEC[shape]
    spec = DataSpec("test", num_classes, event_shape)
    torch.manual_seed(0)
    model = configured(name, "tiny", shape).model.build(spec)  # type: ignore[arg-type]
    for p in model.parameters():
        if not p.any():  # what starts at zero would hide a gradient
            nn.init.normal_(p, std=0.02)
    x = torch.randint(num_classes, (3, *event_shape))
    kept = gradients(model, x)
    held: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (held.append(t.numel()), t)[1], lambda t: t):
        gradients(model, x)
    usual, held[:] = sum(held), []
    recompute_blocks(model)
    again = gradients(model, x)
    assert kept.keys() == again.keys()
    for key, value in kept.items():
        torch.testing.assert_close(again[key], value, rtol=1e-5, atol=1e-6)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (held.append(t.numel()), t)[1], lambda t: t):
        torch.manual_seed(1)
        model(x).sum()  # what the forward pass alone keeps
    assert sum(held) < 0.6 * usual
    with torch.no_grad():
        model(x)


def test_a_network_without_blocks_is_refused() -> None:
    spec = DataSpec("test", 5, (8,))
    model = RECIPES["argmax-ar"].settings().build(spec) if False else nn.LSTM(2, 2)
    with pytest.raises(ValueError, match="`recompute` is for networks that are made of blocks"):
        recompute_blocks(model)
