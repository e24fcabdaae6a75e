"""Bins of numbers and dates: resolution, edges, and values that come back within their bin."""

import numpy as np
import pandas as pd
import pytest

from unordinal.data import load_data
from unordinal.data.schema import Column


def test_numbers_drawn_from_bins_have_the_resolution_of_the_column() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "price": np.round(rng.gamma(3, 2, 3000), 2),
        "income": rng.integers(0, 300, 3000) * 1000,
        "day": np.datetime64("2025-01-01") + rng.integers(0, 365, 3000).astype("timedelta64[D]"),
        "weight": rng.standard_normal(3000),
    })  # fmt: skip
    data = load_data(frame, shuffle=False)
    assert [column.step for column in data.spec.schema] == [0.01, 1000.0, 86_400e6, 0.0]
    drawn = data.spec.frame(data.train.symbols)
    assert (drawn["price"] == drawn["price"].round(2)).all()
    assert drawn["price"].nunique() > 300
    assert (drawn["income"] % 1000 == 0).all()
    assert (drawn["day"] == drawn["day"].dt.normalize()).all()
    for place, column in enumerate(data.spec.schema):  # the values drawn lie in their bins
        assert (column.encode(drawn[column.name]) == data.train.symbols[:, place]).all()
    widths = data.spec.schema[1].log_widths()
    low, high = data.spec.schema[1].bins[3]
    assert np.exp(widths[3]) == pytest.approx((high - low) / 1000 + 1)


def test_numbers_between_two_bins_belong_to_one_of_them() -> None:
    column = Column("v", "float64", bins=((0.0, 1.0), (1.1, 1.1), (1.2, 2.0), (2.1, 2.1), (2.2, 2.2)), step=0.1)
    found = column.encode(pd.Series([1.05, 1.1, 1.15, 2.05, 2.15, 2.2, 2.3, -0.1]))
    assert found.tolist() == [0, 1, 2, 2, -1, 4, -1, -1]
