"""The eight Gaussians: their exact probabilities, and draws that follow them."""

import math

import numpy as np
import pytest

from unordinal.data import load_data
from unordinal.data.toy import draw_eight_gaussians, eight_gaussians_pmf
from unordinal.evaluate.exact import entropy


def test_eight_gaussians_are_drawn_from_their_probabilities() -> None:
    pmf = eight_gaussians_pmf()
    assert pmf.sum() == pytest.approx(1, abs=1e-12)
    assert entropy(pmf) == pytest.approx(6.31996, abs=1e-5)
    x = draw_eight_gaussians(400_000, np.random.default_rng(0))
    counts = np.zeros_like(pmf)
    np.add.at(counts, tuple(x.T), 1)
    large = pmf > 2e-5
    deviation = (counts - 400_000 * pmf)[large] / np.sqrt(400_000 * pmf[large])
    assert abs(deviation).max() < 5.5
    assert 0.9 < deviation.var() < 1.1
    np.testing.assert_allclose(pmf, pmf.T, atol=1e-15)  # eight-fold symmetry
    np.testing.assert_allclose(pmf, pmf[::-1], atol=1e-15)


def test_a_cell_holds_the_integral_of_the_density_over_it() -> None:
    """By the midpoint rule on a fine grid, for a cell beside the centre (2, 0), which is at (85, 45)."""
    size = 400
    fine = (np.arange(size) + 0.5) / size - 0.5
    for cell in ((84, 46), (85, 45), (83, 44)):
        u, v = ((cell[axis] + fine - 45) / 20 for axis in range(2))
        density = 0.0
        for angle in np.arange(8) * math.pi / 4:
            du, dv = (u - 2 * math.cos(angle)) / 0.1, (v - 2 * math.sin(angle)) / 0.1
            density += np.exp(-(du[:, None] ** 2 + dv**2) / 2).mean() / (2 * math.pi * 0.01 * 8)
        assert eight_gaussians_pmf()[cell] == pytest.approx(density / 20**2, rel=1e-4)


def test_the_data_set_is_a_fixed_sample_with_its_probabilities() -> None:
    data = load_data("eight-gaussians")
    assert data.spec.split_sizes == (2_000_000, 10_000, 10_000)
    assert (data.spec.num_classes, data.spec.event_shape) == (91, (2,))
    assert data.pmf is not None
    np.testing.assert_array_equal(data.pmf, eight_gaussians_pmf())
    x = np.asarray(data.test.symbols)
    share = data.pmf[tuple(x.T)]
    assert abs(-np.log(share).mean() - entropy(data.pmf)) < 4.5 * np.log(share).std() / 100
    with pytest.raises(ValueError, match="unknown setting 'split'"):
        load_data("eight-gaussians", split="1,1,1")
    with pytest.raises(ValueError, match="unknown setting 'num_classes'"):
        load_data("eight-gaussians", num_classes=5)
