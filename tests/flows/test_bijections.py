"""Every bijection: Jacobian by autodiff, round trips in both types, on sequences and on maps."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import zuko
from torch import Tensor, nn

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
from unordinal.flows.bijection import Bijection, Chain, Inverse
from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.density import Flow
from unordinal.flows.elementwise import (
    Affine,
    Elementwise,
    ElementwiseMap,
    LogisticMixture,
    NonlinearSquared,
    RationalQuadraticSpline,
    Sigmoid,
    Softplus,
)
from unordinal.flows.linear import InvertibleLinear
from unordinal.flows.reshape import Permutation, Reversal, Squeeze
from unordinal.model_config import MapDensityConfig
from unordinal.models.build_maps import map_density
from unordinal.nets.channels import ChannelNet
from unordinal.nets.context import Mlp
from unordinal.nets.densenet import DenseNet
from unordinal.nets.recurrent import BiLSTM, CausalLSTM
from unordinal.nets.sequence import CausalTransformer, SequenceTransformer

C, H = 3, 2  # channels of the data and of the condition

MAPS: dict[str, Callable[[], ElementwiseMap]] = {
    "affine": Affine,
    "mixture": lambda: LogisticMixture(4),
    "spline": lambda: RationalQuadraticSpline(5, bound=3.0),
    "nonlinear squared": NonlinearSquared,
}


def elementwise(name: str, cond_channels: int = 0) -> Bijection:
    map_ = MAPS[name]()
    net = Mlp(cond_channels, C * map_.num_parameters, width=8) if cond_channels else None
    return Elementwise(map_, num_channels=C, net=net)


def coupling(name: str, cond_channels: int = 0) -> Bijection:
    map_, fixed = MAPS[name](), split_of(C)
    return Coupling(Mlp(fixed + cond_channels, (C - fixed) * map_.num_parameters, width=8), map_, num_channels=C)


def autoregressive(net: nn.Module, map_: ElementwiseMap) -> Bijection:
    return TimeFlow(net, channels(map_))


def channels(map_: ElementwiseMap) -> Bijection:
    return ChannelAutoregressive(ChannelNet(8, C, map_.num_parameters, width=4), map_, num_channels=C)


def time_coupling(net: nn.Module, *, is_parallel: bool) -> Bijection:
    map_, fixed = NonlinearSquared(), split_of(C)
    inner = Mlp(fixed + 8, (C - fixed) * map_.num_parameters, width=8)
    return TimeFlow(net, Coupling(inner, map_, num_channels=C), is_parallel=is_parallel)


def sequence_coupling(net: nn.Module, map_: ElementwiseMap) -> Bijection:
    return Coupling(net, map_, num_channels=C)


# any shape (B, *D, C)
ANYWHERE: dict[str, Callable[[], Bijection]] = {
    **{f"elementwise {name}": partial(elementwise, name) for name in MAPS},
    **{f"coupling {name}": partial(coupling, name) for name in MAPS},
    "linear": lambda: InvertibleLinear(C),
    "actnorm": lambda: ActNorm(C),
    "permutation": lambda: Permutation(torch.tensor([2, 0, 1])),
    "reversal of time": lambda: Reversal(1),
    "reversal of channels": lambda: Reversal(-1),
    "sigmoid": Sigmoid,
    "softplus": Softplus,
    "chain": lambda: Chain([InvertibleLinear(C), coupling("mixture"), ActNorm(C), coupling("affine")]),
    "inverse": lambda: Inverse(coupling("mixture")),
}
CONDITIONAL: dict[str, Callable[[], Bijection]] = {
    **{f"elementwise {name} given cond": partial(elementwise, name, H) for name in MAPS},
    **{f"coupling {name} given cond": partial(coupling, name, H) for name in MAPS},
}
# sequences only
SEQUENCES: dict[str, Callable[[], Bijection]] = {
    "autoregressive lstm": lambda: autoregressive(CausalLSTM(C, width=8, num_layers=2), LogisticMixture(3)),
    "autoregressive transformer": lambda: autoregressive(
        CausalTransformer(C, width=8, num_blocks=2, num_heads=2, conv=3), LogisticMixture(3)
    ),
    "autoregressive affine": lambda: autoregressive(CausalLSTM(C, width=8), Affine()),
    "autoregressive spline": lambda: autoregressive(CausalLSTM(C, width=8), RationalQuadraticSpline(4)),
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
    config = MapDensityConfig(num_levels=num_levels, num_flows=1, width=4, depth=2)
    density = map_density(config, (4, 8), C)
    assert isinstance(density, Flow)
    return density.bijection


CASES = {**ANYWHERE, **CONDITIONAL, **SEQUENCES, **ON_MAPS}


def made(name: str, dtype: torch.dtype) -> Bijection:
    """The bijection with every weight random, those that start at zero too."""
    torch.manual_seed(3)
    bijection = CASES[name]()
    scale = 0.02 if name == "levels" else 0.15  # its triangular 48 x 48 factors would be near-singular
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
def test_log_determinant_is_that_of_the_autodiff_jacobian(name: str) -> None:
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
            if name in ("sigmoid", "softplus"):  # whose range is not all of R
                continue
            w, _ = bijection.inverse(v, cond)
            torch.testing.assert_close(bijection(w, cond)[0], v, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [n for n in CASES if n not in ("sigmoid", "softplus")])
def test_the_inverse_is_differentiable(name: str) -> None:
    """d inverse(forward(v)) = identity, and weights get the implicit function's gradient."""
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


def test_mixture_inverse_passes_gradients_to_its_parameters() -> None:
    map_ = LogisticMixture(3)
    parameters = torch.randn(20, 9, dtype=torch.float64, requires_grad=True)
    z = torch.randn(20, dtype=torch.float64)
    v, log_slope = map_.inverse(z, parameters)
    (gradient,) = torch.autograd.grad((v + log_slope).sum(), parameters)
    step = 1e-6 * torch.randn_like(parameters)
    with torch.no_grad():
        high, low = (sum(part.sum() for part in map_.inverse(z, parameters + s)) for s in (step, -step))
    torch.testing.assert_close((gradient * step).sum(), (high - low) / 2, rtol=1e-5, atol=1e-10)


def test_spline_agrees_with_zuko() -> None:
    torch.manual_seed(0)
    bins, bound = 6, 4.0
    spline = RationalQuadraticSpline(bins, bound=bound)
    parameters = torch.randn(300, spline.num_parameters, dtype=torch.float64)
    x, y, slopes = spline.knots(parameters)
    oracle = zuko.transforms.MonotonicRQSTransform(
        torch.zeros(300, bins, dtype=torch.float64),
        torch.zeros(300, bins, dtype=torch.float64),
        torch.zeros(300, bins - 1, dtype=torch.float64),
        bound=bound,
    )
    oracle.horizontal, oracle.vertical, oracle.derivatives = x, y, slopes  # zuko bounds its bins in another way
    v = 3 * torch.randn(300, dtype=torch.float64)
    z, log_slope = spline.forward(v, parameters)
    torch.testing.assert_close(z, oracle(v), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(log_slope, oracle.log_abs_det_jacobian(v, z), rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(spline.inverse(z, parameters)[0], oracle.inv(z), rtol=1e-8, atol=1e-8)


def test_lu_agrees_with_zuko_and_with_the_dense_matrix() -> None:
    torch.manual_seed(0)
    linear = InvertibleLinear(5).double()
    for parameter in linear.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    lower, upper = linear.factors()
    diagonal = upper.diagonal()  # zuko keeps it in the lower factor
    oracle = zuko.transforms.LULinearTransform(lower * diagonal + (upper / diagonal.unsqueeze(1)).triu(1))
    v = torch.randn(7, 4, 5, dtype=torch.float64)
    z, log_det = linear(v)
    torch.testing.assert_close(z, oracle(v) @ linear.permutation.mT, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(log_det, oracle.log_abs_det_jacobian(v, v).sum(dim=1), rtol=1e-10, atol=1e-10)
    dense = linear.permutation @ lower @ upper
    torch.testing.assert_close(log_det, 4 * torch.linalg.slogdet(dense)[1].expand(7), rtol=1e-10, atol=1e-10)


def test_linear_starts_as_a_rotation() -> None:
    torch.manual_seed(0)
    linear = InvertibleLinear(6)
    v = torch.randn(3, 2, 6)
    z, log_det = linear(v)
    torch.testing.assert_close(z.norm(dim=-1), v.norm(dim=-1))
    assert float(log_det.detach().abs().max()) < 1e-4


def test_actnorm_standardises_its_first_batch_and_only_that() -> None:
    norm = ActNorm(2)
    v = torch.randn(64, 5, 2) * torch.tensor([3.0, 0.1]) + torch.tensor([1.0, -2.0])
    norm.eval()
    assert torch.equal(norm(v)[0], v)  # a batch that is scored does not start it
    norm.train()
    z, _ = norm(v)
    torch.testing.assert_close(z.flatten(0, 1).mean(0), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(z.flatten(0, 1).std(0, correction=0), torch.ones(2), atol=1e-5, rtol=0)
    before = norm.log_scale.clone()
    norm(7 * v)
    assert torch.equal(norm.log_scale, before)
    norm = ActNorm(2).train()
    norm(torch.ones(4, 3, 2))
    assert bool(torch.isfinite(norm.log_scale).all())


def test_nonlinear_squared_far_out_in_float32() -> None:
    """Values and gradients stay numbers, and round trips close, as far as float32 goes."""
    map_ = NonlinearSquared()
    size = torch.logspace(-3, 8, 200)
    z = torch.cat([-size, size]).requires_grad_()
    for k in (-5.0, 0.0, 5.0):  # of both signs, as steep as it gets
        for scale in (-9.0, 0.0, 9.0):
            parameters = torch.tensor([0.1, -scale, k, scale, 0.3]).expand(len(z), 5).clone().requires_grad_()
            v, log_slope = map_.inverse(z, parameters)
            back, log_slope_back = map_.forward(v, parameters)
            assert bool(torch.isfinite(v).all())
            assert float(((back - z).abs() / (1 + z.abs())).detach().max()) < 1e-4
            torch.testing.assert_close(log_slope, -log_slope_back)
            found = torch.autograd.grad((v / (1 + v.detach().abs())).sum() + log_slope.sum(), [z, parameters])
            assert all(bool(torch.isfinite(g).all()) for g in found)


def test_squeeze_gathers_blocks_row_by_row() -> None:
    v = torch.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    z, log_det = Squeeze()(v)
    assert z.shape == (2, 2, 3, 12)
    # the block of row 1, column 2: pixels (2, 4), (2, 5), (3, 4), (3, 5), three channels each
    assert torch.equal(z[0, 1, 2], torch.cat([v[0, 2, 4], v[0, 2, 5], v[0, 3, 4], v[0, 3, 5]]))
    assert torch.equal(log_det, torch.zeros(2, dtype=v.dtype))
    assert torch.equal(Squeeze().inverse(z)[0], v)
    text = torch.arange(2 * 6 * 2).reshape(2, 6, 2)
    assert torch.equal(Squeeze()(text)[0], text.reshape(2, 3, 4))
    assert torch.equal(Squeeze().inverse(text.reshape(2, 3, 4))[0], text)
    with pytest.raises(ValueError, match=r"only even sides can be halved, got \(3, 4\)"):
        Squeeze()(torch.zeros(1, 3, 4, 2))
    with pytest.raises(ValueError, match="6 channels cannot be shared by 4"):
        Squeeze().inverse(torch.zeros(1, 2, 2, 6))


def test_mixture_with_one_component_is_affine() -> None:
    v = torch.randn(50, dtype=torch.float64)
    parameters = torch.tensor([0.3, 0.7, -0.2], dtype=torch.float64).expand(50, 3)
    z, log_slope = LogisticMixture(1).forward(v, parameters)
    raw = LogisticMixture.LARGEST_LOG_SCALE * math.tanh(-0.2 / LogisticMixture.LARGEST_LOG_SCALE)
    torch.testing.assert_close(z, (v - 0.7) * math.exp(-raw))
    torch.testing.assert_close(log_slope, torch.full_like(v, -raw))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LogisticMixture(0), "at least 1 component, got 0"),
        (lambda: RationalQuadraticSpline(0), "1 to 999 bins"),
        (lambda: Coupling(nn.Identity(), Affine(), num_channels=1), "at least 2 channels, got 1"),
        (lambda: Coupling(nn.Identity(), Affine(), num_channels=3, num_fixed=3), "got 3 of 3 fixed"),
        (lambda: Permutation(torch.tensor([0, 0])), "each of 0..1 once"),
        (lambda: Reversal(0), "axis 0 is the batch"),
        (lambda: CausalLSTM(2, width=0), "width 0"),
        (lambda: CausalTransformer(2, width=9, num_blocks=1, num_heads=2), "width 9, heads 2"),
        (lambda: CausalTransformer(2, width=8, num_blocks=1, num_heads=2, conv=4), "must be odd"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
