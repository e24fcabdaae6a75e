"""Densities compared with torch.distributions and by integration, and samples compared with their densities."""

import pytest
import torch
from torch import Tensor, distributions, nn

from unordinal.flows.autoregressive import ChannelAutoregressive, TimeFlow
from unordinal.flows.bijection import Chain
from unordinal.flows.density import (
    ConditionalLogistic,
    ConditionalNormal,
    Density,
    Flow,
    StandardLogistic,
    StandardNormal,
)
from unordinal.flows.elementwise import LogisticMixture
from unordinal.flows.linear import InvertibleLinear
from unordinal.nets.channels import ChannelNet
from unordinal.nets.recurrent import CausalLSTM


class Fixed(nn.Module):
    """A network without weights, with a known formula."""

    def forward(self, cond: Tensor) -> Tensor:
        return torch.cat([cond[..., :1] + 0.5, -cond[..., :1], 0.2 * cond[..., :1], cond[..., :1] - 1], dim=-1)


def test_log_densities_equal_those_of_torch() -> None:
    v = torch.randn(6, 3, 2, dtype=torch.float64)
    normal = distributions.Normal(torch.zeros((), dtype=torch.float64), 1.0)
    torch.testing.assert_close(StandardNormal((3, 2)).log_prob(v), normal.log_prob(v).sum((1, 2)))
    uniform = distributions.Uniform(torch.zeros((), dtype=torch.float64), 1.0)
    logistic = distributions.TransformedDistribution(uniform, [distributions.SigmoidTransform().inv])
    torch.testing.assert_close(StandardLogistic((3, 2)).log_prob(v), logistic.log_prob(v).sum((1, 2)))
    mean, log_scale = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 2, dtype=torch.float64)
    for density, torchs in ((StandardNormal((3, 2)), normal), (StandardLogistic((3, 2)), logistic)):
        expected = torchs.log_prob((v - mean) / log_scale.exp()) - log_scale
        torch.testing.assert_close(density.scaled_log_density(v, mean, log_scale), expected)


def test_conditional_normal_reports_the_density_of_what_it_draws() -> None:
    density = ConditionalNormal(Fixed(), mean=0.3, log_scale=-0.4)
    cond = torch.randn(50, 3, 1, dtype=torch.float64)
    v, log_prob = density.sample(50, cond)
    torch.testing.assert_close(log_prob, density.log_prob(v, cond))
    mean, log_scale = Fixed()(cond).chunk(2, dim=-1)
    expected = distributions.Normal(mean + 0.3, (log_scale - 0.4).exp()).log_prob(v).sum((1, 2))
    torch.testing.assert_close(log_prob, expected)
    with pytest.raises(ValueError, match="batch size of the condition, 50; got 3"):
        density.sample(3, cond)
    with pytest.raises(ValueError, match="ConditionalNormal needs a condition"):
        density.sample(3)


def test_conditional_logistic_reports_the_density_of_what_it_draws() -> None:
    density = ConditionalLogistic(Fixed(), mean=0.3, log_scale=-0.4)
    cond = torch.randn(50, 3, 1, dtype=torch.float64)
    v, log_prob = density.sample(50, cond)
    torch.testing.assert_close(log_prob, density.log_prob(v, cond))
    mean, log_scale = Fixed()(cond).chunk(2, dim=-1)
    x = (v - mean - 0.3) / (log_scale - 0.4).exp()
    slope = torch.sigmoid(x) * torch.sigmoid(-x) / (log_scale - 0.4).exp()  # of the CDF
    torch.testing.assert_close(log_prob, slope.log().sum((1, 2)))


def small_flow() -> Density:
    torch.manual_seed(0)
    transform = LogisticMixture(3)
    head = ChannelNet(4, 1, transform.num_parameters, width=4)
    flow = Flow(
        Chain(
            [
                InvertibleLinear(1),
                TimeFlow(CausalLSTM(1, width=4), ChannelAutoregressive(head, transform, num_channels=1)),
            ]
        ),
        StandardLogistic((2, 1)),
    ).double()
    for parameter in flow.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    return flow


def test_a_flow_integrates_to_one_and_reports_the_density_of_its_draws() -> None:
    flow = small_flow()
    side = torch.linspace(-40, 40, 1601, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side).unsqueeze(-1)  # (N, L = 2, C = 1)
    with torch.no_grad():
        mass = sum(flow.log_prob(part).exp().sum() for part in grid.split(200_000)) * (side[1] - side[0]) ** 2
        v, log_prob = flow.sample(100, generator=torch.Generator().manual_seed(1))
        torch.testing.assert_close(log_prob, flow.log_prob(v), rtol=1e-8, atol=1e-8)
    assert abs(float(mass) - 1) < 2e-3


def test_samples_follow_the_density() -> None:
    """E[f] over samples equals the quadrature of f times the density, within standard errors."""
    flow = small_flow()
    side = torch.linspace(-40, 40, 1201, dtype=torch.float64)
    grid = torch.cartesian_prod(side, side).unsqueeze(-1)
    with torch.no_grad():
        weight = torch.cat([flow.log_prob(part).exp() for part in grid.split(200_000)]) * (side[1] - side[0]) ** 2
        v, _ = flow.sample(20_000, generator=torch.Generator().manual_seed(1))
    for f in (
        lambda v: torch.tanh(v[:, 0, 0]),
        lambda v: torch.tanh(v[:, 1, 0]),
        lambda v: torch.tanh(v.prod(1)[:, 0]),
    ):
        drawn = f(v)
        error = drawn.std() / len(drawn) ** 0.5
        assert abs(float(drawn.mean() - (weight * f(grid)).sum())) < 4.5 * float(error) + 2e-3


def test_logistic_draws_reach_into_the_tails() -> None:
    """Half of the draws are above 0, and the fraction beyond 10 is as expected (4.5e-5 on either side)."""
    v, _ = StandardLogistic((1_000_000,)).sample(1, generator=torch.Generator().manual_seed(0))
    far = float((v.abs() > 10).double().mean())
    assert abs(far - 2 * 4.54e-5) < 5 * (9e-5 / 1e6) ** 0.5
    assert abs(float((v > 0).double().mean()) - 0.5) < 0.0025
