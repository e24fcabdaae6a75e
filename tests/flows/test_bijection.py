"""Every bijection: log-determinants by autodiff, and round trips in float32 and float64, on sequences and maps."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
from unordinal.flows.bijection import Bijection, Chain, Inverse, num_positions
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import Flow
from unordinal.flows.elementwise import Affine, Elementwise, ElementwiseTransform, LogisticMixture, NonlinearSquared
from unordinal.flows.linear import InvertibleLinear
from unordinal.flows.ready import coupling_flow
from unordinal.flows.reshape import Reversal, Squeeze
from unordinal.nets.channels import ChannelNet
from unordinal.nets.context import Mlp
from unordinal.nets.densenet import DenseNet
from unordinal.nets.recurrent import BiLSTM, CausalLSTM
from unordinal.nets.sequence import CausalTransformer, SequenceTransformer

C, H = 3, 2  # channels of the data and of the condition


TRANSFORMS: dict[str, Callable[[], ElementwiseTransform]] = {
    "affine": Affine,
    "mixture": lambda: LogisticMixture(4),
    "nonlinear squared": NonlinearSquared,
}


def elementwise(name: str, cond_channels: int = 0) -> Bijection:
    transform = TRANSFORMS[name]()
    net = Mlp(cond_channels, C * transform.num_parameters, width=8) if cond_channels else None
    return Elementwise(transform, num_channels=C, net=net)


def coupling(name: str, cond_channels: int = 0) -> Bijection:
    transform, fixed = TRANSFORMS[name](), split_of(C)
    return Coupling(
        Mlp(fixed + cond_channels, (C - fixed) * transform.num_parameters, width=8), transform, num_channels=C
    )


def autoregressive(net: nn.Module, transform: ElementwiseTransform) -> Bijection:
    return TimeFlow(net, channels(transform))


def channels(transform: ElementwiseTransform) -> Bijection:
    return ChannelAutoregressive(ChannelNet(8, C, transform.num_parameters, width=4), transform, num_channels=C)


def time_coupling(net: nn.Module, *, is_parallel: bool) -> Bijection:
    transform, fixed = NonlinearSquared(), split_of(C)
    inner = Mlp(fixed + 8, (C - fixed) * transform.num_parameters, width=8)
    return TimeFlow(net, Coupling(inner, transform, num_channels=C), is_parallel=is_parallel)


def sequence_coupling(net: nn.Module, transform: ElementwiseTransform) -> Bijection:
    return Coupling(net, transform, num_channels=C)


# any shape (B, *D, C)
ANYWHERE: dict[str, Callable[[], Bijection]] = {
    **{f"elementwise {name}": partial(elementwise, name) for name in TRANSFORMS},
    **{f"coupling {name}": partial(coupling, name) for name in TRANSFORMS},
    "linear": lambda: InvertibleLinear(C),
    "actnorm": lambda: ActNorm(C),
    "reversal of time": lambda: Reversal(1),
    "reversal of channels": lambda: Reversal(-1),
    "chain": lambda: Chain([InvertibleLinear(C), coupling("mixture"), ActNorm(C), coupling("affine")]),
    "inverse": lambda: Inverse(coupling("mixture")),
}


CONDITIONAL: dict[str, Callable[[], Bijection]] = {
    **{f"elementwise {name} given cond": partial(elementwise, name, H) for name in TRANSFORMS},
    **{f"coupling {name} given cond": partial(coupling, name, H) for name in TRANSFORMS},
}


# sequences only
SEQUENCES: dict[str, Callable[[], Bijection]] = {
    "autoregressive lstm": lambda: autoregressive(CausalLSTM(C, width=8, num_layers=2), LogisticMixture(3)),
    "autoregressive transformer": lambda: autoregressive(
        CausalTransformer(C, width=8, num_blocks=2, num_heads=2, conv=3), LogisticMixture(3)
    ),
    "autoregressive affine": lambda: autoregressive(CausalLSTM(C, width=8), Affine()),
    "coupling in time": lambda: time_coupling(CausalLSTM(C, width=8), is_parallel=False),
    "coupling in time by passes": lambda: time_coupling(CausalLSTM(C, width=8), is_parallel=True),
    "inverse coupling in time": lambda: Inverse(
        time_coupling(CausalTransformer(C, width=8, num_blocks=1, num_heads=2), is_parallel=True)
    ),
    "channels twice in time": lambda: TimeFlow(
        CausalLSTM(C, width=8), Chain([channels(NonlinearSquared()), Reversal(-1), channels(Affine())])
    ),
    "coupling bilstm": lambda: sequence_coupling(BiLSTM(2, 9, width=4, num_layers=2), LogisticMixture(3)),
    "coupling transformer": lambda: sequence_coupling(
        SequenceTransformer(2, 9, width=8, num_blocks=1, num_heads=2, conv=3), LogisticMixture(3)
    ),
}


# maps only
ON_MAPS: dict[str, Callable[[], Bijection]] = {
    "coupling densenet": lambda: Coupling(DenseNet(2, 2, width=6, depth=2, num_sharp=2), Affine(), num_channels=C),
    "squeezed": lambda: Chain([Squeeze(), InvertibleLinear(4 * C), Inverse(Squeeze())]),
    "levels": lambda: levels(3),
}


def levels(num_levels: int) -> Bijection:
    density = coupling_flow(
        lambda read, write: DenseNet(read, write, width=4, depth=2, num_sharp=read),
        event_shape=(4, 8, C),
        num_flows=1,
        num_mixtures=0,
        num_levels=num_levels,
        front=[ActNorm(C)],
    )
    assert isinstance(density, Flow)
    return density.bijection


CASES = {**ANYWHERE, **CONDITIONAL, **SEQUENCES, **ON_MAPS}


def made(name: str, dtype: torch.dtype) -> Bijection:
    """The bijection with all weights random, including those that are initialised to zero."""
    torch.manual_seed(3)
    bijection = CASES[name]()
    scale = (
        0.02 if name == "levels" else 0.15
    )  # larger weights would make its triangular 48 x 48 factors nearly singular
    for parameter in bijection.parameters():
        parameter.data += scale * torch.randn_like(parameter)
    return bijection.to(dtype).eval()


def inputs(name: str, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    generator = torch.Generator().manual_seed(5)
    v = torch.randn(*shape, C, generator=generator, dtype=torch.float64)
    cond = torch.randn(*shape, H, generator=generator, dtype=torch.float64).to(dtype) if name in CONDITIONAL else None
    return v.to(dtype), cond


def shapes(name: str) -> list[tuple[int, ...]]:
    if name in ON_MAPS:
        return [(2, 4, 8)]
    return [(4, 5)] if name in SEQUENCES else [(4, 5), (4, 2, 3)]  # a batch of sequences, of maps


@pytest.mark.parametrize("name", CASES)
def test_log_determinant_equals_that_of_the_autodiff_jacobian(name: str) -> None:
    bijection = made(name, torch.float64)
    for shape in shapes(name):
        v, cond = inputs(name, shape, torch.float64)
        for one in range(2):
            row = slice(one, one + 1)
            given = None if cond is None else cond[row]

            def flat(x: Tensor, given: Tensor | None = given, shape: tuple[int, ...] = v[:1].shape) -> Any:
                return bijection(x.view(shape), given)[0].flatten()

            jacobian = torch.autograd.functional.jacobian(flat, v[row].flatten())
            expected = torch.linalg.slogdet(jacobian)[1]
            torch.testing.assert_close(bijection(v, cond)[1][one], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)])
@pytest.mark.parametrize("name", CASES)
def test_round_trips(name: str, dtype: torch.dtype, tolerance: float) -> None:
    bijection = made(name, dtype)
    for shape in shapes(name):
        v, cond = inputs(name, shape, dtype)
        with torch.no_grad():
            z, log_det = bijection(v, cond)
            back, log_det_back = bijection.inverse(z, cond)
            torch.testing.assert_close(back, v, rtol=tolerance, atol=tolerance)
            torch.testing.assert_close(log_det_back, -log_det, rtol=tolerance, atol=10 * tolerance)
            w, _ = bijection.inverse(v, cond)
            torch.testing.assert_close(bijection(w, cond)[0], v, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", CASES)
def test_the_inverse_is_differentiable(name: str) -> None:
    """The gradient of the inverse equals a finite difference."""
    bijection = made(name, torch.float64)
    v, cond = inputs(name, (2, *shapes(name)[0][1:]), torch.float64)
    z = bijection(v, cond)[0].detach().requires_grad_()
    back, log_det = bijection.inverse(z, cond)
    direction = torch.randn(back.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (gradient,) = torch.autograd.grad((back * direction).sum() + log_det.sum(), z)
    step = 1e-6 * torch.randn(z.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    with torch.no_grad():

        def value(at: Tensor) -> Tensor:
            out, log_det = bijection.inverse(at, cond)
            return (out * direction).sum() + log_det.sum()

        numeric = (value(z + step) - value(z - step)) / 2
    torch.testing.assert_close((gradient * step).sum(), numeric, rtol=1e-4, atol=1e-11)


def test_num_positions_does_not_count_channels() -> None:
    assert [num_positions(torch.zeros(shape)) for shape in ((7, 5, 3), (7, 4, 6, 3), (7, 3))] == [5, 24, 1]
