"""The law of bits per character against compute."""

import pytest

from unordinal.reproduce.scaling import envelope, fitted, law_of, plot_scaling

LAW = [(budget, 3.0 * budget**-0.1) for budget in (1.0, 2.0, 4.0, 8.0)]


def test_a_law_is_found_again() -> None:
    assert law_of(LAW) == pytest.approx((3.0, 0.1))
    assert law_of(LAW[:1]) is None


def test_the_envelope_holds_the_best_of_each_budget() -> None:
    assert envelope([*LAW, *((budget, bits + 1) for budget, bits in LAW)]) == LAW


def test_the_largest_budget_is_left_out_of_the_fit_and_compared() -> None:
    told = fitted([*LAW[:-1], (8.0, LAW[-1][1] + 0.5)])
    assert told is not None
    assert "bits = 3.000 * minutes^-0.1000" in told
    assert "(+0.500)" in told
    assert fitted(LAW[:2]) is None


def test_a_picture_is_drawn_even_of_models_without_points() -> None:
    assert plot_scaling({"arm": LAW, "absorbing": [], "one": LAW[:1]}).startswith(b"\x89PNG")
