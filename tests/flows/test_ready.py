"""Complete flows: densities compared with autodiff, and samples with their densities, in several sizes."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, distributions, nn

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.density import ConditionalNormal, Density, Flow, StandardLogistic, StandardNormal
from unordinal.flows.elementwise import LogisticMixture
from unordinal.flows.ready import autoregressive_flow, conditional_flow, coupling_flow
from unordinal.nets.context import Mlp
from unordinal.nets.densenet import DenseNet
from unordinal.nets.recurrent import BiLSTM, CausalLSTM
from unordinal.nets.sequence import CausalTransformer

C, H = 3, 2  # channels of the data and of the condition


def mlp(read: int, write: int) -> nn.Module:
    return Mlp(read, write, width=8)


def bilstm(read: int, write: int) -> nn.Module:
    return BiLSTM(read, write, width=4)


def densenet(read: int, write: int) -> nn.Module:
    return DenseNet(read, write, width=4, depth=2, num_sharp=read)


def transformer() -> nn.Module:
    return CausalTransformer(C, width=8, num_blocks=1, num_heads=2)


CASES: dict[str, Callable[[], Density]] = {
    "autoregressive": lambda: autoregressive_flow(
        CausalLSTM(C, width=8), width=8, event_shape=(4, C), num_mixtures=3, channel_width=4
    ),
    "autoregressive behind a front": lambda: autoregressive_flow(
        transformer(), width=8, event_shape=(4, C), num_mixtures=2, channel_width=4, front=[ActNorm(C)]
    ),
    "coupling": lambda: coupling_flow(bilstm, event_shape=(4, C), num_flows=2, num_mixtures=3),
    "coupling affine": lambda: coupling_flow(mlp, event_shape=(4, C), num_flows=3, num_mixtures=0),
    "coupling of two levels": lambda: coupling_flow(
        bilstm, event_shape=(4, C), num_flows=1, num_levels=2, num_mixtures=2, front=[ActNorm(C)]
    ),
    "coupling on maps": lambda: coupling_flow(densenet, event_shape=(2, 4, C), num_flows=1, num_mixtures=2),
    "coupling on maps of two levels": lambda: coupling_flow(
        densenet, event_shape=(2, 4, C), num_flows=2, num_levels=2, num_mixtures=0, front=[ActNorm(C)]
    ),
}


def randomised(density: Density, scale: float = 0.1) -> Density:
    """The density with all weights random, including those that are initialised to zero, in float64."""
    generator = torch.Generator().manual_seed(0)
    for parameter in density.parameters():
        parameter.data += scale * torch.randn(parameter.shape, generator=generator)
    return density.double().eval().requires_grad_(False)


def made(name: str) -> Density:
    torch.manual_seed(3)
    return randomised(CASES[name]())


def noise_of(density: Density, v: Tensor, cond: Tensor | None = None) -> Tensor:
    """The noise of v, through flows whose bases are flows."""
    while isinstance(density, Flow):
        v, _ = density.bijection(v, cond)
        density = density.base
    return v


def expected_log_prob(density: Density, v: Tensor) -> Tensor:
    """The log-density of one example, from the base density of torch and the full Jacobian by autodiff."""
    jacobian = torch.autograd.functional.jacobian(lambda x: noise_of(density, x), v).view(v.numel(), v.numel())
    log_det = torch.linalg.slogdet(jacobian)[1]
    base = density
    while isinstance(base, Flow):
        base = base.base
    zero, z = torch.zeros((), dtype=v.dtype), noise_of(density, v)
    if isinstance(base, StandardLogistic):
        uniform, logit = distributions.Uniform(zero, 1.0), distributions.SigmoidTransform().inv
        return distributions.TransformedDistribution(uniform, [logit]).log_prob(z).sum() + log_det
    assert isinstance(base, StandardNormal)
    return distributions.Normal(zero, 1.0).log_prob(z).sum() + log_det


@pytest.mark.parametrize("name", CASES)
def test_densities_equal_those_by_autodiff(name: str) -> None:
    density = made(name)
    v = torch.randn(2, *density.sample(1)[0].shape[1:], dtype=torch.float64)
    found = density.log_prob(v)
    for one in range(2):
        expected = expected_log_prob(density, v[one : one + 1])
        torch.testing.assert_close(found[one], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", CASES)
def test_samples_have_their_densities_and_return_to_their_noise(name: str) -> None:
    density = made(name)
    v, log_prob = density.sample(50, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(log_prob, density.log_prob(v), rtol=1e-8, atol=1e-8)
    if "autoregressive" in name:  # it draws from components, so its noise cannot be recovered
        return
    assert isinstance(density, Flow)
    noise, _ = density.base.sample(50, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(noise_of(density, v), noise, rtol=1e-8, atol=1e-8)


def test_samples_of_other_sizes_have_their_densities() -> None:
    for name, shape in (("coupling of two levels", (10, C)), ("coupling on maps of two levels", (6, 2, C))):
        density = made(name)
        v, log_prob = density.sample(5, event_shape=shape, generator=torch.Generator().manual_seed(1))
        assert v.shape == (5, *shape)
        torch.testing.assert_close(log_prob, density.log_prob(v), rtol=1e-8, atol=1e-8)
    density = made("autoregressive")
    v, log_prob = density.sample(5, event_shape=(7, C))
    assert v.shape == (5, 7, C)
    torch.testing.assert_close(log_prob, density.log_prob(v), rtol=1e-8, atol=1e-8)


def test_a_new_autoregressive_flow_has_the_initial_mixture_everywhere() -> None:
    """Its channel network starts at zero, so that every value has the initial mixture as its density."""
    density = autoregressive_flow(CausalLSTM(C, width=8), width=8, event_shape=(4, C), num_mixtures=3).double()
    v = 2 * torch.randn(6, 4, C, dtype=torch.float64)
    x = v.unsqueeze(-1) - torch.tensor([-1.0, 0.0, 1.0], dtype=torch.float64) * LogisticMixture.SPREAD
    expected = (torch.sigmoid(x) * torch.sigmoid(-x)).mean(-1).log().sum((1, 2))
    torch.testing.assert_close(density.log_prob(v), expected)


def test_a_second_level_has_a_larger_receptive_field() -> None:
    """A network that reads one position depends, in the second level, on its block of 2 x 2 pixels and nothing else."""
    torch.manual_seed(0)
    for num_levels in (1, 2):
        density = coupling_flow(mlp, event_shape=(4, 4, C), num_flows=1, num_mixtures=2, num_levels=num_levels)
        randomised(density)
        v = torch.randn(1, 4, 4, C, dtype=torch.float64)
        other = v.clone()
        other[0, 1, 2] += 1
        moved = ((noise_of(density, v) - noise_of(density, other)).abs().amax(-1) > 1e-12)[0].nonzero().tolist()
        assert moved == ([[1, 2]] if num_levels == 1 else [[0, 2], [0, 3], [1, 2], [1, 3]])


@pytest.mark.parametrize("num_flows", [0, 1, 3])
def test_a_conditional_flow_reports_the_density_of_what_it_draws(num_flows: int) -> None:
    """The density follows by autodiff, as u is a function of the noise of the base, which is normal."""
    torch.manual_seed(0)
    base = ConditionalNormal(nn.Linear(H, 2 * C))
    density = conditional_flow(base, lambda read, write: mlp(read + H, write), num_channels=C, num_flows=num_flows)
    randomised(density)
    assert num_flows or density is base
    cond = torch.randn(4, 5, H, dtype=torch.float64)
    u, log_q = density.sample(4, cond, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(log_q, density.log_prob(u, cond), rtol=1e-8, atol=1e-8)
    for one in range(4):
        row = slice(one, one + 1)
        z = noise_of(density, u[row], cond[row])

        def back(u: Tensor, row: slice = row) -> Tensor:
            return noise_of(density, u, cond[row])

        jacobian = torch.autograd.functional.jacobian(back, u[row]).view(5 * C, 5 * C)
        mean, log_scale = base.net(cond[row]).chunk(2, dim=-1)
        expected = distributions.Normal(mean, log_scale.exp()).log_prob(z).sum() + torch.linalg.slogdet(jacobian)[1]
        torch.testing.assert_close(log_q[one], expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("name", "value"), [("num_levels", 0), ("num_flows", 0), ("num_flows", -1)])
def test_too_few_levels_or_flows_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name}`? must be at least 1, got {value}"):
        coupling_flow(mlp, event_shape=(4, C), **{name: value})  # type: ignore[arg-type]
