"""LSTMs: compared with torch, and which positions they read. Causality is tested in flows/test_autoregressive.py."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from unordinal.nets.recurrent import AroundLSTM, BiLSTM, CausalLSTM


@pytest.mark.parametrize("num_layers", [1, 2])
@torch.no_grad()
def test_surroundings_and_the_position_itself_are_separate(num_layers: int) -> None:
    torch.manual_seed(0)
    net = AroundLSTM(2, 3, width=4, num_layers=num_layers).double()
    v = torch.randn(1, 5, 2, dtype=torch.float64)
    other = v.clone()
    other[:, 2] += 1
    read: list[torch.Tensor] = []
    net.out.register_forward_pre_hook(lambda _, given: read.append(given[0]))
    net(v), net(other)
    own = net.look.out_channels
    differs = (read[0] != read[1])[0]  # (L, own + 2 W)
    assert bool(differs[2, :own].any())
    assert not bool(differs[2, own:].any())  # the features of the LSTMs do not depend on the position itself
    assert bool(differs[3, own : own + 4].any())
    assert bool(differs[1, own + 4 :].any())
    assert not bool(differs[1, own : own + 4].any())


@torch.no_grad()
def test_lstm_steps_equal_those_of_torch() -> None:
    """The equations of the cell, layer by layer, compared with nn.LSTM on the same inputs."""
    torch.manual_seed(0)
    net = CausalLSTM(2, width=5, num_layers=2).double()
    net.first.normal_()
    v = torch.randn(3, 6, 2, dtype=torch.float64)
    inputs = torch.cat([net.first.expand(3, 1, -1), net.look(v[:, :-1])], dim=1)
    expected, _ = net.lstm(inputs)
    state, before = net.init_state(3), None
    for place in range(6):
        features, state = net.step(before, state)
        torch.testing.assert_close(features, expected[:, place])
        before = v[:, place]


def test_the_bidirectional_lstm_reads_all_positions_and_starts_at_zero() -> None:
    torch.manual_seed(0)
    net = BiLSTM(2, 3, width=4)
    v = torch.randn(1, 7, 2, requires_grad=True)
    assert float(net(v).detach().abs().max()) == 0
    net.out.weight.data.normal_()
    (gradient,) = torch.autograd.grad(net(v)[0, 3].sum(), v)
    assert bool((gradient[0].abs().sum(-1) > 0).all())


@pytest.mark.parametrize(("make", "message"), [(lambda: CausalLSTM(2, width=0), "width 0")])
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
