"""Reports on synthetic tables: figures of tables whose quality is known."""

import numpy as np
import pandas as pd
import pytest

from unordinal.data.cafe import cafe_orders
from unordinal.tasks.synthetic import CompareTables, closest, compare_tables, information_of, repeated, two_sample_auc


def shuffled(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return frame.apply(lambda column: pd.Series(rng.permutation(column.to_numpy())))


def test_rows_of_the_same_process_are_as_good_as_held_out_ones_and_independent_columns_are_not() -> None:
    real, same = cafe_orders(6000, 0), cafe_orders(2000, 1)
    good = compare_tables(CompareTables(real, same, target="drink", rows=1500))
    bad = compare_tables(CompareTables(real, shuffled(real), target="drink", rows=1500))
    by_name = {figure.name: figure for figure in good.figures}
    worse = {figure.name: figure for figure in bad.figures}
    for name in ("classifier", "association", "utility", "pairs"):
        one, other = by_name[name], worse[name]
        gap = abs(one.values["held-out"] - one.values["independent"])
        assert abs(one.values["synthetic"] - one.values["held-out"]) < 0.3 * gap
        assert abs(other.values["synthetic"] - other.values["independent"]) < 0.3 * gap
    assert by_name["columns"].is_blind or by_name["columns"].values["independent"] < 0.1
    assert not by_name["association"].is_blind
    assert abs(by_name["classifier"].values["synthetic"] - 0.5) < 0.06
    assert worse["classifier"].values["synthetic"] > 0.7
    assert by_name["repeated"].values["copied"] == 1
    assert by_name["distance"].values["copied"] == 0
    repeats = by_name["repeated"].values
    assert abs(repeats["synthetic"] - repeats["held-out"]) < 0.02


def test_copies_are_found() -> None:
    real = cafe_orders(2000, 0)
    found = {figure.name: figure.values for figure in compare_tables(CompareTables(real, real.iloc[:800])).figures}
    assert found["repeated"]["synthetic"] > found["repeated"]["held-out"] + 0.3  # half of the copies are training rows
    assert found["distance"]["synthetic"] < 0.7 * found["distance"]["held-out"]


def test_distances_shares_and_information_by_hand() -> None:
    train = np.array([[0, 0, 0, 0], [1, 1, 1, 1]])
    x = np.array([[0, 0, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1]])
    assert closest(x, train) == pytest.approx((0.25 + 0 + 0.5) / 3)
    assert repeated(x, train) == pytest.approx(1 / 3)
    both = np.stack([np.arange(400) % 2, np.arange(400) % 2, np.arange(400) // 2 % 2], axis=1)
    np.testing.assert_allclose(information_of(both, [2, 2, 2])[0], [0, np.log(2) - 1 / 800, 0], atol=1e-12)
    rng = np.random.default_rng(0)
    assert two_sample_auc(rng.integers(0, 2, (500, 3)), rng.integers(0, 2, (500, 3)), 0) == pytest.approx(0.5, abs=0.08)


def test_tables_that_do_not_fit_are_refused() -> None:
    real = cafe_orders(300)
    with pytest.raises(ValueError, match="the tables must have the same columns: 'drink' is missing"):
        compare_tables(CompareTables(real, real.drop(columns="drink")))
    with pytest.raises(ValueError, match=r"unknown column 'drnk'; did you mean drink\?"):
        compare_tables(CompareTables(real, real, target="drnk"))
    with pytest.raises(ValueError, match="a comparison needs at least 40 real and 10 synthetic rows"):
        compare_tables(CompareTables(real, real.iloc[:5]))
