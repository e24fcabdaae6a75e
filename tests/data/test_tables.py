"""Tables: what is read from files and DataFrames, and what is refused in one line."""

import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unordinal.api import fit, load
from unordinal.data import load_data, source_of
from unordinal.data.tables import TableSource, records

CSV = 'name,code,score\nann,007,1.5\nbob,010,?\n"c, d",007,\nann,010,2.5\n'
SMALL: dict[str, Any] = {"steps": 2, "progress": False, "net.width": 8, "net.num_blocks": 1, "net.num_heads": 1}


def written(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def rows(num: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["frog", "toad", "newt"], num)
    colour = np.where(rng.random(num) < 0.8, np.where(kind == "frog", "green", "brown"), "red")
    return pd.DataFrame({"kind": kind, "colour": colour, "legs": rng.integers(2, 5, num)})


def test_cells_are_texts_and_missing_ones_are_missing(tmp_path: Path) -> None:
    data = load_data(written(tmp_path, CSV), split="0,0,1", shuffle=False)
    assert [column.name for column in data.spec.schema] == ["name", "code", "score"]
    assert data.spec.schema[1].values == ("007", "010")
    assert data.spec.schema[2].has_missing
    frame = data.spec.frame(data.test.symbols)
    assert frame["name"].tolist() == ["ann", "bob", "c, d", "ann"]
    assert frame["score"].isna().tolist() == [False, True, True, False]
    assert data.spec.columns == (3, 2, 3)
    none = load_data(tmp_path / "t.csv", split="0,0,1", missing=("none",), shuffle=False)
    assert none.spec.schema[2].values == ("1.5", "2.5", "", "?")


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.xz", ".tsv", ".parquet"])
def test_formats_and_marks(ending: str, tmp_path: Path) -> None:
    frame, path = rows(), tmp_path / f"t{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    else:
        text = frame.to_csv(index=False, sep="\t" if ending == ".tsv" else ",").replace("\n", "\r\n")
        raw = b"\xef\xbb\xbf" + text.encode()  # a byte-order mark, and line ends of Windows
        packed: Any = {".csv.gz": gzip.compress, ".csv.xz": lzma.compress}.get(ending, bytes)
        path.write_bytes(packed(raw))
    data = load_data(path, shuffle=False, split="0,0,1")
    found = data.spec.frame(data.test.symbols)
    assert found["kind"].tolist() == frame["kind"].tolist()
    assert found["legs"].astype(int).tolist() == frame["legs"].tolist()


def test_rows_are_shuffled_by_the_seed_before_they_are_split() -> None:
    frame = rows()
    chosen = ((False, 0), (True, 0), (True, 1), (True, 0))
    plain, one, two, again = (load_data(frame, shuffle=s, shuffle_seed=n).train.symbols for s, n in chosen)
    assert np.array_equal(one, again)
    assert not np.array_equal(one, two)
    assert not np.array_equal(plain, one)


def test_numbers_are_cut_into_bins_from_training_rows_only() -> None:
    values = np.concatenate([np.arange(900) % 300, np.full(50, 1000), np.full(50, 2000)])
    frame = pd.DataFrame({"v": values, "w": np.arange(1000) % 2})
    data = load_data(frame, bins=8, shuffle=False)
    column = data.spec.schema[0]
    assert column.bins[-1][1] == 2000  # the outer edge is that of the file
    counts = np.bincount(data.train.symbols[:, 0], minlength=len(column.bins))[:7]
    assert counts.min() > 60
    assert load_data(frame, bins=0).spec.schema[0].values[:3] == ("0", "1", "2")
    assert load_data(frame, types=("v=category",)).spec.schema[0].bins == ()
    assert load_data(frame, drop=("w",)).spec.event_shape == (1,)


def test_a_run_of_a_table_samples_scores_and_is_loaded(tmp_path: Path) -> None:
    frame = rows()
    run = fit("arm", frame, out=tmp_path / "run", **SMALL)
    assert list(run.sample(5).columns) == ["kind", "colour", "legs"]
    assert set(run.sample(50)["kind"]) <= {"frog", "toad", "newt"}
    again = load(tmp_path / "run")
    assert again.spec.schema == run.spec.schema
    other = again.score(frame[["legs", "kind", "colour"]].iloc[:20])  # another order of columns
    assert other.num_examples == 20
    strange = frame.iloc[:20].assign(kind=["newt"] * 19 + ["dragon"])
    assert again.score(strange).num_examples == 19


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a header and rows"),
        ("a,b\n", "has a header and no rows"),
        ("a,b\n1,2\n3\n", "cannot be read as a table with 2 columns"),
        ("a,a\n1,2\n", "two columns are called 'a'"),
        ("a,\n1,2\n", "column 2 has no name"),
        ("1,2\n3,4\n", "has no header: its first row holds numbers"),
        ("a\n" + "\n".join(f"t{i}" for i in range(100)), "all values of a differ; leave the column out with `drop` a"),
        ("a,b\nx,y\nx,y\n", "every column of .* is constant"),
    ],
)
def test_tables_that_cannot_be_read_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message) as error:
        load_data(written(tmp_path, text))
    assert "\n" not in str(error.value)


def test_columns_that_do_not_fit_are_named() -> None:
    frame = rows()
    run = fit("chow-liu", frame, progress=False)
    with pytest.raises(ValueError, match="has no column 'legs'; expected kind, colour, legs"):
        run.score(frame[["kind", "colour"]])
    with pytest.raises(ValueError, match="has a column 'wings' that the model lacks; remove it"):
        run.score(frame.assign(wings="two"))
    with pytest.raises(ValueError, match=r"unknown column 'lgs'; did you mean legs\?"):
        load_data(frame, drop=("lgs",))
    with pytest.raises(ValueError, match=r"unknown type of kind 'categry'; did you mean category\?"):
        load_data(frame, types=("kind=categry",))
    strange = frame.assign(kind=["frog"] * 2 + ["dragon"] * 198)
    strict = TableSource(frame=strange, strict=True, shuffle=False, schema=run.spec.schema)
    with pytest.raises(ValueError, match="row 3: kind has the value 'dragon'"):
        strict.load()


def test_paths_and_frames_are_recognised(tmp_path: Path) -> None:
    assert isinstance(source_of(rows()), TableSource)
    assert isinstance(source_of(written(tmp_path, CSV)), TableSource)
    assert source_of(f"table:{tmp_path / 't.csv'}").name == f"table:{tmp_path / 't.csv'}"


def test_whole_numbers_with_gaps_are_the_same_numbers_as_floats() -> None:
    frame = pd.DataFrame({"n": [1, 2, 3, 4] * 50, "x": [0.5, 1.0] * 100})
    schema = load_data(frame, shuffle=False).spec.schema
    assert schema[0].encode(pd.Series([2.0, 4.0])).tolist() == [1, 3]
    assert schema[0].encode(pd.Series([2.5, 4.0])).tolist() == [-1, -1]
    assert schema[1].encode(pd.Series([1, 1])).tolist() == [1, 1]


def test_a_common_date_has_a_class_of_its_own_and_dates_come_back_within_their_bins() -> None:
    common = pd.Timestamp("2021-03-04 05:06:07")
    days = pd.Series([*pd.date_range("2020-01-01", periods=300, freq="D"), *[common] * 100], name="day")
    data = load_data(pd.DataFrame({"day": days, "kind": ["a", "b"] * 200}), shuffle=False, split="400,0,0")
    column = data.spec.schema[0]
    codes = column.encode(days)
    lows = [low for low, _ in column.bins]
    assert len(set(lows)) == len(lows)
    assert set(codes[300:]) == {column.class_of("2021-03-04T05:06:07")}
    assert set(codes[:300]).isdisjoint(codes[300:])
    drawn = column.decode(codes, np.random.default_rng(0))
    assert (column.encode(drawn) == codes).all()
    assert (drawn[300:] == common).all()


def test_rows_as_plain_values() -> None:
    days = pd.to_datetime(["2025-03-16", None])
    times = pd.to_datetime(["2025-03-16 08:30", "2025-03-17 00:00"])
    frame = pd.DataFrame({"day": days, "time": times, "price": [1.5, 2.0], "drink": ["tea", None]})
    assert records(frame) == [
        {"day": "2025-03-16", "time": "2025-03-16T08:30:00.000", "price": 1.5, "drink": "tea"},
        {"day": None, "time": "2025-03-17T00:00:00.000", "price": 2.0, "drink": None},
    ]
