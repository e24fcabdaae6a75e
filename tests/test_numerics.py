"""The mixture of logistics in log space, and its inverse, against plain formulas and against itself."""

import pytest
import torch
from torch import Tensor

from unordinal.numerics import mixture_logit, mixture_logit_inverse


def mixture(num: int, components: int, *, spread: float, log_scale: float, seed: int = 0) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    draws = torch.randn(3, num, components, generator=generator, dtype=torch.float64)
    return torch.log_softmax(draws[0], -1), spread * draws[1], log_scale * draws[2] - 1


def test_logit_and_slope_against_the_plain_formula() -> None:
    parameters = mixture(500, 5, spread=2, log_scale=0.5)
    v = 2 * torch.randn(500, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    value, log_slope = mixture_logit(v, *parameters)
    cdf = (parameters[0].exp() * torch.sigmoid((v.unsqueeze(-1) - parameters[1]) / parameters[2].exp())).sum(-1)
    torch.testing.assert_close(value, torch.logit(cdf), rtol=1e-7, atol=1e-8)
    v = v.requires_grad_()
    (slope,) = torch.autograd.grad(mixture_logit(v, *parameters)[0].sum(), v)
    torch.testing.assert_close(log_slope, slope.log(), rtol=1e-9, atol=1e-9)


def test_float32_does_not_saturate_in_either_tail() -> None:
    """A CDF in float32 is 1 above a logit of 16; the log-space one goes on like float64's."""
    parameters = mixture(1, 4, spread=1, log_scale=0.3)
    v = torch.linspace(-80, 80, 101, dtype=torch.float64)
    wide = [p.expand(101, -1) for p in parameters]
    exact = mixture_logit(v, *wide)
    single = mixture_logit(v.float(), *(p.float() for p in wide))
    assert float(exact[0].abs().max()) > 100
    for got, expected in zip(single, exact, strict=True):
        torch.testing.assert_close(got.double(), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize(
    ("components", "spread", "log_scale"), [(1, 1, 0.5), (4, 1, 0.5), (8, 3, 1), (27, 5, 1.5), (64, 1, 0.5), (8, 10, 2)]
)
def test_inverse_is_found_in_few_iterations(components: int, spread: float, log_scale: float) -> None:
    """At most 15 evaluations to 1e-9 in float64, narrow far-apart components included."""
    for seed in range(3):
        parameters = mixture(2000, components, spread=spread, log_scale=log_scale, seed=seed)
        y = 3 * torch.randn(2000, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        v, iterations = mixture_logit_inverse(y, *parameters, tolerance=1e-9)
        torch.testing.assert_close(mixture_logit(v, *parameters)[0], y, rtol=1e-9, atol=1e-9)
        assert iterations <= 15


def test_inverse_stays_inside_its_bracket_at_extreme_values() -> None:
    parameters = mixture(400, 6, spread=5, log_scale=1)
    for y in (torch.full((400,), -200.0), torch.full((400,), 200.0), torch.zeros(400)):
        v, _ = mixture_logit_inverse(y.double(), *parameters)
        quantiles = parameters[1] + parameters[2].exp() * y.double().unsqueeze(-1)
        assert bool((v >= quantiles.amin(-1)).all())
        assert bool((v <= quantiles.amax(-1)).all())
        torch.testing.assert_close(mixture_logit(v, *parameters)[0], y.double(), rtol=1e-9, atol=1e-9)


def test_inverse_in_float32() -> None:
    parameters = [p.float() for p in mixture(3000, 8, spread=3, log_scale=0.7)]
    v = 4 * torch.randn(3000, generator=torch.Generator().manual_seed(2))
    y, log_slope = mixture_logit(v, *parameters)
    back, _ = mixture_logit_inverse(y, *parameters)
    # where the function is flat a rounding of y is a long way in v: compare in y's units there
    assert float(((back - v) * log_slope.exp().clamp(max=1)).abs().max()) < 1e-4
