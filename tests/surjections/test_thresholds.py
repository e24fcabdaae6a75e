"""Thresholding, compared with the Gumbels of torch, the table of the paper, autodiff and quadrature."""

import math

import pytest
import torch
from contracts import chi_square_p_value
from torch import Tensor, distributions

from unordinal.flows.density import StandardLogistic
from unordinal.surjections.thresholds import gumbel_log_prob, gumbel_threshold, log_softplus, softplus_threshold


def grid(low: float, high: float, num: int, channels: int) -> tuple[Tensor, float]:
    """Midpoints of a regular grid over a cube, and the volume of a cell."""
    width = (high - low) / num
    side = low + width * (torch.arange(num, dtype=torch.float64) + 0.5)
    return torch.cartesian_prod(*([side] * channels)).view(-1, channels), width**channels


@pytest.mark.parametrize("num_classes", [2, 3])
def test_the_gumbel_closed_form_integrates_to_one(num_classes: int) -> None:
    """The density of Gumbels given their argmax, by quadrature over v."""
    phi = torch.tensor([0.4, -0.6, 0.1], dtype=torch.float64)[:num_classes]
    v, cell = grid(-4, 14, 1600 if num_classes == 2 else 240, num_classes)
    for label in range(num_classes):
        inside = v.argmax(dim=-1) == label
        x = torch.full((len(v), 1), label)
        density = gumbel_log_prob(v.unsqueeze(1), x, phi.expand(len(v), 1, -1)).exp()
        assert abs(float(density[inside].sum()) * cell - 1) < 0.03


def test_gumbel_with_uniform_noise_is_gumbel_threshold_with_a_uniform_flow() -> None:
    torch.manual_seed(0)
    phi = torch.randn(50, 4, 6, dtype=torch.float64)
    x = torch.randint(6, (50, 4))
    uniform = StandardLogistic((4, 6)).double()  # the logit of a uniform u
    s, log_q = uniform.sample(50)
    v, log_det = gumbel_threshold(s, x, phi)
    torch.testing.assert_close(log_q - log_det, gumbel_log_prob(v, x, phi), rtol=1e-9, atol=1e-9)
    assert torch.equal(v.argmax(-1), x)


def test_gumbels_equal_those_of_torch_and_of_the_papers_table() -> None:
    torch.manual_seed(0)
    phi = torch.randn(40, 1, 5, dtype=torch.float64)
    x = torch.randint(5, (40, 1))
    s = torch.randn(40, 1, 5, dtype=torch.float64)
    v, _ = gumbel_threshold(s, x, phi)
    u = torch.sigmoid(s)
    largest = torch.logsumexp(phi, -1) - torch.log(-torch.log(u.gather(-1, x.unsqueeze(-1)).squeeze(-1)))
    torch.testing.assert_close(v.gather(-1, x.unsqueeze(-1)).squeeze(-1), largest)
    truncated = phi - torch.log(torch.exp(phi - largest.unsqueeze(-1)) - torch.log(u))  # tab:gumbel
    others = torch.ones_like(v, dtype=torch.bool).scatter(-1, x.unsqueeze(-1), False)
    torch.testing.assert_close(v[others], truncated[others], rtol=1e-9, atol=1e-9)
    # log q from the Gumbels of torch: that of the maximum, and of each other element given that it is below
    gumbel = distributions.Gumbel(phi, torch.ones_like(phi))
    top = distributions.Gumbel(torch.logsumexp(phi, -1), torch.ones(40, 1, dtype=torch.float64))
    below = gumbel.log_prob(v) - gumbel.cdf(largest.unsqueeze(-1)).log()
    expected = top.log_prob(largest) + (below * others).sum(-1)
    torch.testing.assert_close(gumbel_log_prob(v, x, phi), expected.sum(-1), rtol=1e-8, atol=1e-8)


def test_gumbel_argmax_has_the_frequencies_of_softmax() -> None:
    """Lifting x drawn from softmax(phi) gives unconditional Gumbels: each v_i is Gumbel(phi_i), by its quantiles."""
    phi = torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)
    torch.manual_seed(0)
    x = torch.multinomial(torch.softmax(phi, 0), 100_000, replacement=True).unsqueeze(1)
    s, _ = StandardLogistic((1, 3)).double().sample(len(x))
    v, _ = gumbel_threshold(s, x, phi.expand(len(x), 1, 3))
    u = torch.exp(-torch.exp(phi - v[:, 0]))  # uniform if Gumbel
    for i in range(3):
        counts = torch.histc(u[:, i], 20, 0, 1)
        assert chi_square_p_value(counts, torch.full((20,), 0.05, dtype=torch.float64)) > 1e-4


def test_log_determinants_equal_those_by_autodiff() -> None:
    torch.manual_seed(0)
    x = torch.tensor([[1]])
    phi = torch.randn(1, 1, 4, dtype=torch.float64)
    u = torch.randn(1, 1, 4, dtype=torch.float64)
    for function in (lambda u: softplus_threshold(u, x), lambda u: gumbel_threshold(u, x, phi)):
        jacobian = torch.autograd.functional.jacobian(lambda u, f=function: f(u)[0], u).view(4, 4)
        torch.testing.assert_close(function(u)[1][0], torch.linalg.slogdet(jacobian)[1])


def test_log_softplus_everywhere() -> None:
    a = torch.linspace(-40, 40, 400, dtype=torch.float64)
    expected = torch.log(torch.log1p(torch.exp(a)))
    torch.testing.assert_close(log_softplus(a), expected, rtol=1e-9, atol=1e-9)
    single = log_softplus(torch.tensor([-200.0, -90.0, -16.0, 90.0], requires_grad=True))
    torch.testing.assert_close(single, torch.tensor([-200.0, -90.0, -16.0, math.log(90.0)]))
    single.sum().backward()  # no step of it is infinite
