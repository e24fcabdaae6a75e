"""Causal fixed points: passes against steps, values and gradients, with and without dropout."""

import pytest
import torch
from torch import Tensor, nn

from unordinal.flows.autoregressive import TimeFlow
from unordinal.flows.coupling import Coupling
from unordinal.flows.elementwise import NonlinearSquared
from unordinal.flows.fixed_point import causal_fixed_point
from unordinal.nets.context import Mlp
from unordinal.nets.recurrent import CausalLSTM

C, W, L = 4, 6, 12


def flow(*, spread: float, dropout: float = 0.0) -> TimeFlow:
    torch.manual_seed(0)
    map_ = NonlinearSquared()
    inner = Coupling(Mlp(C // 2 + W, C // 2 * map_.num_parameters, width=8), map_, num_channels=C)
    made = TimeFlow(CausalLSTM(C, width=W, dropout=dropout), inner, is_parallel=True).double()
    for parameter in made.parameters():
        parameter.data += spread * torch.randn_like(parameter)
    return made


def outcome(made: TimeFlow, z: Tensor) -> list[Tensor]:
    """Values, log-determinant, and the gradients of a mixture of both to z and to all weights."""
    z = z.clone().requires_grad_()
    v, log_det = made.inverse(z)
    weight = torch.linspace(-1, 1, v.numel(), dtype=v.dtype).view_as(v)
    gradients = torch.autograd.grad((v * weight).sum() + log_det.sum(), [z, *made.parameters()])
    return [v, log_det, *gradients]


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.5])  # from weak to strong dependence of positions on each other
@pytest.mark.parametrize("most", [L, 4])  # the last resort, steps, is taken in between
def test_passes_give_what_steps_give(spread: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimeFlow, "MOST_PASSES", most)
    made = flow(spread=spread)
    z = torch.randn(3, L, C, dtype=torch.float64)
    by_passes = outcome(made, z)
    made.is_parallel = False
    for ours, expected in zip(by_passes, outcome(made, z), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-9)


def test_dropout_is_the_same_in_every_pass() -> None:
    made = flow(spread=0.5, dropout=0.5).train()
    z = torch.randn(3, L, C, dtype=torch.float64)
    torch.manual_seed(5)
    v, log_det = made.inverse(z)
    torch.manual_seed(5)  # the way back with the same dropout
    back, other = made(v)
    torch.testing.assert_close(back, z)
    torch.testing.assert_close(other, -log_det)
    assert not torch.allclose(made.inverse(z)[0], v)  # and another one the next time


def test_as_many_passes_as_positions_are_enough() -> None:
    calls = 0

    def doubling(v: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return 1 + nn.functional.pad(2 * v[:, :-1], (1, 0))  # errors grow from position to position

    with torch.no_grad():
        v = causal_fixed_point(doubling, torch.zeros(1, 9))
        assert causal_fixed_point(doubling, torch.zeros(1, 9), most=4) is None
    assert v is not None
    assert torch.equal(v, 2.0 ** torch.arange(1, 10).unsqueeze(0) - 1)
    assert calls <= 9 + 4
