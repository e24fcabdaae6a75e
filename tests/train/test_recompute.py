"""Activations that are computed again give the gradients of those that are kept, in less memory."""

import pytest
import torch
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.recipes import configured
from unordinal.train.recompute import recompute_blocks

SHAPES: dict[str, tuple[int, ...]] = {"sequences": (32,), "maps": (16, 16)}


def gradients(model: nn.Module, x: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    torch.manual_seed(1)
    model(x).sum().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def kept_for_the_gradient(model: nn.Module, x: Tensor) -> int:
    """How many numbers a forward pass keeps."""
    held: list[int] = []

    def pack(value: Tensor) -> Tensor:
        held.append(value.numel())
        return value

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
        torch.manual_seed(1)
        model(x).sum()
    return sum(held)


SEQUENCES = ("arm", "arm-xl", "multinomial", "absorbing")


@pytest.mark.parametrize(("name", "shape"), [*((name, "sequences") for name in SEQUENCES), ("uniform", "maps")])
def test_gradients_are_the_same(name: str, shape: str) -> None:
    spec = DataSpec("test", 5, SHAPES[shape])
    torch.manual_seed(0)
    model = configured(name, "tiny", shape).model.build(spec)  # type: ignore[arg-type]
    for p in model.parameters():
        if not p.any():  # what starts at zero would hide a gradient
            nn.init.normal_(p, std=0.02)
    x = torch.randint(5, (3, *SHAPES[shape]))
    before, usual = gradients(model, x), kept_for_the_gradient(model, x)
    recompute_blocks(model)
    after, fewer = gradients(model, x), kept_for_the_gradient(model, x)
    assert before.keys() == after.keys()
    for key, value in before.items():
        torch.testing.assert_close(after[key], value, rtol=1e-5, atol=1e-6)
    assert fewer < 0.6 * usual
    with torch.no_grad():
        model(x)


def test_a_network_without_blocks_is_refused() -> None:
    with pytest.raises(ValueError, match="`recompute` is for networks that are made of blocks"):
        recompute_blocks(nn.LSTM(2, 2))
