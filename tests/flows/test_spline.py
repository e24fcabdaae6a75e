"""Rational-quadratic splines, compared with those of zuko."""

import pytest
import torch
import zuko

from unordinal.flows.spline import RationalQuadraticSpline


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


def test_a_spline_without_bins_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 999 bins"):
        RationalQuadraticSpline(0)
