"""Causal networks: no position sees itself or what follows, and step by step equals in whole."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from unordinal.nets.channels import ChannelNet
from unordinal.nets.recurrent import CausalLSTM
from unordinal.nets.sequence import CausalTransformer, SequenceTransformer

C = 3
NETS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: CausalLSTM(C, width=16, num_layers=2),
    "transformer": lambda: CausalTransformer(C, width=16, num_blocks=2, num_heads=2),
    "transformer with convolution": lambda: CausalTransformer(C, width=16, num_blocks=2, num_heads=2, conv=5),
    "lstm given cond": lambda: CausalLSTM(C, width=16, cond_channels=2),
    "transformer given cond": lambda: CausalTransformer(C, width=16, num_blocks=1, num_heads=2, cond_channels=2),
}


def made(name: str) -> Any:
    torch.manual_seed(0)
    net = NETS[name]()
    for parameter in net.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return net.eval()


@pytest.mark.parametrize("name", NETS)
def test_step_equals_forward(name: str) -> None:
    net = made(name)
    v = torch.randn(4, 40, C)
    cond = torch.randn(4, 40, 2) if "cond" in name else None
    with torch.no_grad():
        whole = net(v, cond)
        state, before = net.init_state(4), None
        for place in range(40):
            features, state = net.step(before, state, None if cond is None else cond[:, place])
            torch.testing.assert_close(features, whole[:, place], rtol=1e-5, atol=1e-5)
            before = v[:, place]


@pytest.mark.parametrize("name", NETS)
def test_a_position_sees_only_what_came_before(name: str) -> None:
    net = made(name).double()
    v = torch.randn(1, 6, C, dtype=torch.float64, requires_grad=True)
    cond = torch.randn(1, 6, 2, dtype=torch.float64) if "cond" in name else None
    out = net(v, cond).square()  # the plain sum of a normalised vector is constant
    for place in range(6):
        (gradient,) = torch.autograd.grad(out[0, place].sum(), v, retain_graph=True)
        sees = gradient[0].abs().sum(dim=-1) > 0
        assert sees.tolist() == [other < place for other in range(6)]


def test_channels_see_only_the_channels_before() -> None:
    torch.manual_seed(0)
    net = ChannelNet(5, 4, 2, width=6).double()
    net.out.data.normal_()
    h, v = torch.randn(2, 3, 5, dtype=torch.float64), torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    out = net(h, v)  # (B, L, C, P)
    for channel in range(4):
        (gradient,) = torch.autograd.grad(out[:, :, channel].sum(), v, retain_graph=True)
        assert (gradient[0, 0] != 0).tolist() == [other < channel for other in range(4)]
    prepared = net.prepare(h[:, 1])
    for channel in range(4):
        unknown = torch.where(torch.arange(4) < channel, v[:, 1], 99.0)  # what comes later is not read
        torch.testing.assert_close(net.step(prepared, unknown, channel), out[:, 1, channel])


def test_the_bidirectional_transformer_sees_everything() -> None:
    torch.manual_seed(0)
    net = SequenceTransformer(2, 3, width=8, num_blocks=1, num_heads=2, conv=3)
    net.out.weight.data.normal_()
    v = torch.randn(1, 7, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(net(v)[0, 3].sum(), v)
    assert bool((gradient[0].abs().sum(-1) > 0).all())
