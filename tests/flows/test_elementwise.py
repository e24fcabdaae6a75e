"""One-dimensional transformations: gradients of inverses, extreme values in float32, and closed forms."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from unordinal.flows.elementwise import LogisticMixture, NonlinearSquared


def test_mixture_inverse_passes_gradients_to_its_parameters() -> None:
    transform = LogisticMixture(3)
    parameters = torch.randn(20, 9, dtype=torch.float64, requires_grad=True)
    z = torch.randn(20, dtype=torch.float64)
    v, log_slope = transform.inverse(z, parameters)
    (gradient,) = torch.autograd.grad((v + log_slope).sum(), parameters)
    step = 1e-6 * torch.randn_like(parameters)
    with torch.no_grad():
        high, low = (sum(part.sum() for part in transform.inverse(z, parameters + s)) for s in (step, -step))
    torch.testing.assert_close((gradient * step).sum(), (high - low) / 2, rtol=1e-5, atol=1e-10)


def test_nonlinear_squared_far_out_in_float32() -> None:
    """Values and gradients are finite and round trips are accurate, for very large values in float32."""
    transform = NonlinearSquared()
    size = torch.logspace(-3, 8, 200)
    z = torch.cat([-size, size]).requires_grad_()
    for k in (-5.0, 0.0, 5.0):  # of both signs, at the largest slope
        for scale in (-9.0, 0.0, 9.0):
            parameters = torch.tensor([0.1, -scale, k, scale, 0.3]).expand(len(z), 5).clone().requires_grad_()
            v, log_slope = transform.inverse(z, parameters)
            back, log_slope_back = transform.forward(v, parameters)
            assert bool(torch.isfinite(v).all())
            assert float(((back - z).abs() / (1 + z.abs())).detach().max()) < 1e-4
            torch.testing.assert_close(log_slope, -log_slope_back)
            found = torch.autograd.grad((v / (1 + v.detach().abs())).sum() + log_slope.sum(), [z, parameters])
            assert all(bool(torch.isfinite(g).all()) for g in found)


def test_mixture_with_one_component_is_affine() -> None:
    v = torch.randn(50, dtype=torch.float64)
    parameters = torch.tensor([0.3, 0.7, -0.2], dtype=torch.float64).expand(50, 3)
    z, log_slope = LogisticMixture(1).forward(v, parameters)
    raw = LogisticMixture.LARGEST_LOG_SCALE * math.tanh(-0.2 / LogisticMixture.LARGEST_LOG_SCALE)
    torch.testing.assert_close(z, (v - 0.7) * math.exp(-raw))
    torch.testing.assert_close(log_slope, torch.full_like(v, -raw))


@pytest.mark.parametrize(("make", "message"), [(lambda: LogisticMixture(0), "at least 1 component, got 0")])
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
