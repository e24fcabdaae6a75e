"""Columns: values become classes and values again, whatever their type."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data.schema import Column
from unordinal.data.tables import TableSource, load_table

RNG = np.random.default_rng(0)
VALUES = {
    "str": st.sampled_from(["a", "b", "=cmd()", "two\nlines", "007", "NA"]),
    "Int64": st.sampled_from([1, -3, 2**40, None]),
    "boolean": st.sampled_from([True, False, None]),
    "float64": st.sampled_from([0.1, 1e300, -2.5, 1 / 3, float("nan")]),
    "int64": st.integers(-5, 5),
    "bool": st.booleans(),
    "datetime64[ns]": st.sampled_from([pd.Timestamp("2020-02-29"), pd.Timestamp("1999-12-31 23:59:59.5"), pd.NaT]),
    "category": st.sampled_from(["x", "y", None]),
}


@given(st.data(), st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4), st.integers(3, 12))
@settings(max_examples=60, deadline=None)
def test_a_table_comes_back_as_it_was(data: st.DataObject, types: list[str], num: int) -> None:
    columns = {
        f"{place}": pd.Series([data.draw(VALUES[kind]) for _ in range(num)], dtype=kind)
        for place, kind in enumerate(types)
    }
    frame = pd.DataFrame({**columns, "more": ["p", "q"] * (num // 2) + ["p"] * (num % 2)})
    loaded = load_table(frame, TableSource(frame=frame, bins=0, shuffle=False, split="0,0,1"))
    back = loaded.spec.frame(loaded.test.symbols)
    for name in frame.columns:
        if frame[name].isna().all():
            continue  # nothing but missing values: a constant column
        expected = frame[name]
        if str(back[name].dtype) != str(expected.dtype):
            assert str(expected.dtype) in ("int64", "bool")
        pd.testing.assert_series_equal(back[name], expected, check_dtype=False, check_names=False)


@given(st.lists(st.floats(-1e6, 1e6), min_size=70, max_size=200, unique=True), st.booleans())
@settings(max_examples=40, deadline=None)
def test_numbers_stay_in_their_bins(numbers: list[float], is_whole: bool) -> None:
    values = np.array([round(v) for v in numbers] if is_whole else numbers)
    values = np.concatenate([np.zeros(30, values.dtype), values])  # a value with a class of its own
    frame = pd.DataFrame({"v": values, "w": np.arange(len(values)) % 2})
    if frame["v"].nunique() <= 64:
        return
    loaded = load_table(frame, TableSource(frame=frame, bins=8, shuffle=False, split="0.6,0.2,0.2"))
    column = loaded.spec.schema[0]
    assert column.bins
    assert (0.0, 0.0) in column.bins
    assert all(low <= high for low, high in column.bins)
    assert list(column.bins) == sorted(column.bins)
    x = column.encode(frame["v"])
    assert (x >= 0).all()
    for _ in range(3):
        back = column.decode(x, RNG)
        assert (column.encode(back) == x).all()
        if is_whole:
            assert str(back.dtype) == "int64"
    zeros = frame["v"] == 0
    assert (column.decode(x, RNG)[zeros] == 0).all()


def test_values_that_a_user_names() -> None:
    column = Column("size", "str", ("large", "small"), has_missing=True)
    assert column.class_of("small") == 1
    assert column.class_of("(missing)") == 2
    with pytest.raises(ValueError, match=r"unknown value of size 'smal'; did you mean small\?"):
        column.class_of("smal")
    age = Column("age", "int64", bins=((17.0, 19.0), (20.0, 20.0), (21.0, 90.0)))
    assert [age.class_of(v) for v in ("18", "20", "90", "17 to 19")] == [0, 1, 2, 0]
    with pytest.raises(ValueError, match="unknown value of age '91'"):
        age.class_of("91")
    assert age.log_widths().tolist() == [np.log(3), 0.0, np.log(70)]


def test_rare_values_share_a_class() -> None:
    column = Column("c", "str", ("a",), has_other=True, merged=("b", "c"))
    assert column.encode(pd.Series(["a", "b", "c", "new"])).tolist() == [0, 1, 1, 1]
    assert set(column.decode(np.array([0, 1, 1, 1, 1, 1]), RNG)) <= {"a", "b", "c"}
    assert column.classes == ("a", "(other)")
