"""The generated table: reproducible, with columns of many kinds that depend on each other."""

import pandas as pd
import pytest

from unordinal.api import fit, load
from unordinal.data import load_data
from unordinal.data.cafe import cafe_orders


def test_orders_follow_from_the_seed_and_have_columns_of_many_kinds() -> None:
    pd.testing.assert_frame_equal(cafe_orders(50, 3), cafe_orders(50, 3))
    assert not cafe_orders(50, 3).equals(cafe_orders(50, 4))
    data = load_data("cafe", num_rows=2000)
    kinds = {column.name: column for column in data.spec.schema}
    assert kinds["day"].is_date
    assert kinds["day"].bins
    assert kinds["price"].bins
    assert kinds["rating"].has_missing
    assert kinds["visitor"].missing == 3


def test_a_run_finds_its_orders_again_and_a_tree_sees_that_columns_depend(tmp_path: object) -> None:
    tree = fit("chow-liu", "cafe", num_rows=2000, out=f"{tmp_path}/tree", progress=False)
    alone = fit("independent", "cafe", num_rows=2000, progress=False)
    score = load(f"{tmp_path}/tree").score()
    assert score.bits_per_dim == pytest.approx(tree.score().bits_per_dim)
    assert score.bits_per_example < alone.score().bits_per_example - 0.5
    assert score.value_bits is not None
    assert "bits per row" in str(score)
