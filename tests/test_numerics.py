"""Numerical functions, above all the mixture of logistics in log space, compared with plain formulas."""

import pytest
import torch
from contracts import chi_square_p_value
from torch import Tensor

from unordinal.errors import NotANumberError
from unordinal.numerics import (
    class_counts,
    draw_categorical,
    expand_like,
    full_precision,
    mixture_logit,
    mixture_logit_inverse,
    sharpened,
    standard_error,
    sum_except_batch,
    uniform,
)


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
    """A CDF in float32 rounds to 1 above a logit of 16; in log space it is as accurate as in float64."""
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
    """At most 15 evaluations give 1e-9 in float64, also for narrow components that are far apart."""
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
    # where the function is flat, a rounding error of y is a large error of v: errors are measured in y there
    assert float(((back - v) * log_slope.exp().clamp(max=1)).abs().max()) < 1e-4


def test_sums_and_trailing_axes_keep_the_batch() -> None:
    values = torch.arange(24.0).reshape(2, 3, 4)
    assert sum_except_batch(values).tolist() == [66.0, 210.0]
    assert sum_except_batch(values[:, 0, 0]).tolist() == [0.0, 12.0]
    scaled = expand_like(torch.tensor([1.0, 10.0]), values) * values
    assert torch.equal(scaled[1], 10 * values[1])
    assert torch.equal(scaled[0], values[0])


def test_class_counts_equal_bincount() -> None:
    x = torch.randint(5, (7, 4, 3), generator=torch.Generator().manual_seed(0))
    assert torch.equal(class_counts(x, 8), torch.bincount(x.flatten(), minlength=8).float())
    assert torch.equal(class_counts(x[:0], 3), torch.zeros(3))


def test_uniform_draws_are_finer_than_float32() -> None:
    u = uniform((1000, 50), torch.device("cpu"), torch.Generator().manual_seed(0))
    assert bool(((u >= 0) & (u < 1)).all())
    assert bool((u * 2**24 != (u * 2**24).round()).any())
    assert chi_square_p_value(torch.histc(u, 20, 0, 1), torch.full((20,), 0.05, dtype=torch.float64)) > 1e-4


def test_classes_are_drawn_with_the_probabilities_of_softmax() -> None:
    """One class is rare (1e-4), and one is impossible."""
    probabilities = torch.tensor([0.5, 0.3, 0.1899, 0.01, 0.0001, 0.0])
    logits = (probabilities.log() + 3).expand(500, 1000, 6)
    x = draw_categorical(logits, torch.Generator().manual_seed(0))
    assert x.shape == (500, 1000)
    counts = torch.bincount(x.flatten(), minlength=6).double()
    assert counts[5] == 0
    assert chi_square_p_value(counts[:5], probabilities[:5].double()) > 1e-4


def test_drawing_from_nan_logits_is_refused() -> None:
    logits = torch.zeros(4, 3)
    logits[2, 1] = torch.nan
    with pytest.raises(NotANumberError, match="logits of a class to be drawn are NaN"):
        draw_categorical(logits, None)


def test_inverse_is_finite_where_the_function_is_flat() -> None:
    """Two equal components are so far apart that the slope between them, where the logit is 0, vanishes in float32."""
    log_weights = torch.full((4, 2), 0.5).log()
    means, log_scales = torch.tensor([[-200.0, 200.0]]).expand(4, 2), torch.zeros(4, 2)
    y = torch.tensor([0.0, 1e-30, 1.0, -1.0])
    v, _ = mixture_logit_inverse(y, log_weights, means, log_scales)
    assert bool(torch.isfinite(v).all())
    torch.testing.assert_close(mixture_logit(v, log_weights, means, log_scales)[0], y)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("temperature", [0.0, 1e-300, 1e-40, 1e-38, 1e-30, 1e-6])
def test_a_tiny_temperature_takes_the_likeliest_class_and_gives_no_nan(dtype: torch.dtype, temperature: float) -> None:
    logits = torch.tensor([[1.0, 3.0, -2.0], [80.0, -1e4, 79.0], [-300.0, -200.0, -400.0]], dtype=dtype)
    for top_p in (1.0, 0.5):
        p = torch.softmax(sharpened(logits, temperature, top_p), -1)
        assert bool(torch.isfinite(p).all())
        assert torch.equal(p, torch.tensor([[0, 1, 0], [1, 0, 0], [0, 1, 0]], dtype=dtype))


def test_a_temperature_divides_the_logits_and_top_p_drops_the_unlikely() -> None:
    logits = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert sharpened(logits, 1.0) is logits
    for temperature in (0.25, 0.5, 2.0):
        expected = torch.softmax(logits / temperature, -1)
        torch.testing.assert_close(torch.softmax(sharpened(logits, temperature), -1), expected)
    for top_p, kept in ((0.4, 1), (0.5, 1), (0.79, 2), (0.94, 3), (1.0, 4)):
        p = torch.softmax(sharpened(logits, 1.0, top_p), -1)
        assert int((p > 0).sum()) == kept
        torch.testing.assert_close(p[0, :kept], logits[0, :kept].exp() / logits[0, :kept].exp().sum())
    both = torch.softmax(sharpened(logits, 0.5, 0.9), -1)  # the share is that of the sharpened classes
    assert int((both > 0).sum()) == 2


def test_short_floats_become_float32_and_others_stay() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        assert full_precision(torch.zeros(2, dtype=dtype)).dtype == torch.float32
    for dtype in (torch.float32, torch.float64):
        values = torch.zeros(2, dtype=dtype)
        assert full_precision(values) is values


def test_the_standard_error_of_the_mean() -> None:
    values = torch.randn(400, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert standard_error(values) == pytest.approx(float(values.std()) / 20)
    assert standard_error(values[:1]) is None


def test_the_likeliest_class_stays_whatever_top_p_is() -> None:
    logits = torch.tensor([[0.0, 1.0, 0.5]])
    assert sharpened(logits, 1.0, 1e-50).isfinite().tolist() == [[False, True, False]]
