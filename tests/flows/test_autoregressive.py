"""Causal networks depend only on earlier positions; both inverses of a TimeFlow agree; samples follow the density."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unordinal.flows.autoregressive import AutoregressiveMixture, TimeFlow
from unordinal.flows.coupling import Coupling
from unordinal.flows.density import Flow
from unordinal.flows.elementwise import LogisticMixture, NonlinearSquared
from unordinal.nets.channels import ChannelNet
from unordinal.nets.context import Mlp
from unordinal.nets.recurrent import CausalLSTM
from unordinal.nets.sequence import CausalTransformer
from unordinal.progress import Watcher, watching

IN = 3  # channels that a causal network reads
C, W, L = 4, 6, 12  # of the flows: channels, width of the network, length

NETS: dict[str, Callable[[], nn.Module]] = {
    "lstm": lambda: CausalLSTM(IN, width=16, num_layers=2),
    "transformer": lambda: CausalTransformer(IN, width=16, num_blocks=2, num_heads=2),
    "transformer with convolution": lambda: CausalTransformer(IN, width=16, num_blocks=2, num_heads=2, conv=5),
    "lstm given cond": lambda: CausalLSTM(IN, width=16, cond_channels=2),
    "transformer given cond": lambda: CausalTransformer(IN, width=16, num_blocks=1, num_heads=2, cond_channels=2),
}


def randomised_net(name: str) -> Any:
    torch.manual_seed(0)
    net = NETS[name]()
    for parameter in net.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    return net.eval()


@pytest.mark.parametrize("name", NETS)
def test_step_equals_forward(name: str) -> None:
    net = randomised_net(name)
    v = torch.randn(4, 40, IN)
    cond = torch.randn(4, 40, 2) if "cond" in name else None
    with torch.no_grad():
        whole = net(v, cond)
        state, before = net.init_state(4), None
        for place in range(40):
            features, state = net.step(before, state, None if cond is None else cond[:, place])
            torch.testing.assert_close(features, whole[:, place], rtol=1e-5, atol=1e-5)
            before = v[:, place]


@pytest.mark.parametrize("name", NETS)
def test_a_position_depends_only_on_earlier_positions(name: str) -> None:
    net = randomised_net(name).double()
    v = torch.randn(1, 6, IN, dtype=torch.float64, requires_grad=True)
    cond = torch.randn(1, 6, 2, dtype=torch.float64) if "cond" in name else None
    out = net(v, cond).square()  # the plain sum of a normalised vector is constant
    for place in range(6):
        (gradient,) = torch.autograd.grad(out[0, place].sum(), v, retain_graph=True)
        sees = gradient[0].abs().sum(dim=-1) > 0
        assert sees.tolist() == [other < place for other in range(6)]


def make_flow(*, spread: float, dropout: float = 0.0) -> TimeFlow:
    torch.manual_seed(0)
    transform = NonlinearSquared()
    inner = Coupling(Mlp(C // 2 + W, C // 2 * transform.num_parameters, width=8), transform, num_channels=C)
    time_flow = TimeFlow(CausalLSTM(C, width=W, dropout=dropout), inner, is_parallel=True).double()
    for parameter in time_flow.parameters():
        parameter.data += spread * torch.randn_like(parameter)
    return time_flow


def outcome(time_flow: TimeFlow, z: Tensor) -> list[Tensor]:
    """Values, log-determinant, and the gradients of a weighted sum of both with respect to z and all weights."""
    z = z.clone().requires_grad_()
    v, log_det = time_flow.inverse(z)
    weight = torch.linspace(-1, 1, v.numel(), dtype=v.dtype).view_as(v)
    gradients = torch.autograd.grad((v * weight).sum() + log_det.sum(), [z, *time_flow.parameters()])
    return [v, log_det, *gradients]


@pytest.mark.parametrize("spread", [0.1, 0.5, 1.5])  # from weak to strong dependence of positions on each other
@pytest.mark.parametrize("most", [L, 4])  # four passes do not always converge, so that steps are used too
def test_both_inverses_agree(spread: float, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TimeFlow, "MOST_PASSES", most)
    time_flow = make_flow(spread=spread)
    z = torch.randn(3, L, C, dtype=torch.float64)
    by_passes = outcome(time_flow, z)
    time_flow.is_parallel = False
    for ours, expected in zip(by_passes, outcome(time_flow, z), strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-8, atol=1e-9)


def test_dropout_is_the_same_in_every_pass() -> None:
    time_flow = make_flow(spread=0.5, dropout=0.5).train()
    z = torch.randn(3, L, C, dtype=torch.float64)
    torch.manual_seed(5)
    v, log_det = time_flow.inverse(z)
    torch.manual_seed(5)  # the forward direction with the same dropout
    back, other = time_flow(v)
    torch.testing.assert_close(back, z)
    torch.testing.assert_close(other, -log_det)
    assert not torch.allclose(time_flow.inverse(z)[0], v)  # another call has another dropout


def test_steps_report_progress_for_every_position() -> None:
    time_flow, reported = make_flow(spread=0.1), list[float]()
    z = torch.randn(3, L, C, dtype=torch.float64)
    with torch.no_grad(), watching(Watcher(reported.append)):
        time_flow.inverse_by_steps(z, None)
    assert len(reported) == L
    assert abs(sum(reported) - 3) < 1e-9


def test_a_mixture_is_sampled_without_an_inverse() -> None:
    """Expectations over samples equal those by quadrature of the density; sampling through the inverse agrees."""
    torch.manual_seed(0)
    transform = LogisticMixture(3)
    mixture = AutoregressiveMixture(
        CausalLSTM(1, width=4), ChannelNet(4, 1, transform.num_parameters, width=4), transform, event_shape=(2, 1)
    ).double()
    for parameter in mixture.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    side = torch.linspace(-40, 40, 1201, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side).unsqueeze(-1)  # (N, L = 2, C = 1)
    with torch.no_grad():
        weight = torch.cat([mixture.log_prob(part).exp() for part in grid.split(200_000)]) * (side[1] - side[0]) ** 2
        v, log_prob = mixture.sample(20_000, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(log_prob, mixture.log_prob(v), rtol=1e-8, atol=1e-8)
        solved, _ = Flow.sample(mixture, 20_000, generator=torch.Generator().manual_seed(2))
    for f in (
        lambda v: torch.tanh(v[:, 0, 0]),
        lambda v: torch.tanh(v[:, 1, 0]),
        lambda v: torch.tanh(v[:, 0, 0] * v[:, 1, 0]),
        lambda v: (v[:, 1, 0] > v[:, 0, 0]).double(),
    ):
        expected = float((f(grid) * weight).sum() / weight.sum())
        for drawn in (v, solved):
            values = f(drawn)
            assert abs(float(values.mean()) - expected) < 4 * float(values.std()) / len(values) ** 0.5 + 2e-3
