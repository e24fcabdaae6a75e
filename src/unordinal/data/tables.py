"""Data sets from tables: CSV, TSV and Parquet files, and pandas DataFrames. It needs the extra `tables`."""

import csv
import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np

from unordinal.data.bins import bins_of, step_of
from unordinal.data.schema import Column, coded, numbers_of, text_of
from unordinal.data.source import WHOLE, Source, SplitSizes
from unordinal.data.spec import MAX_CLASSES, DataSpec, smallest_type
from unordinal.data.splits import DEFAULT_SPLIT, Data, cut, split_sizes
from unordinal.data.text import TextFile
from unordinal.data.vocabularies import Vocabulary
from unordinal.names import check_known, counted
from unordinal.progress import Progress, silent
from unordinal.settings import PYTHON_ONLY, Flag, Range, Seed

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".tsv", ".parquet")
PACKED = (".gz", ".xz", ".bz2", ".zip")
FEW_VALUES = 64  # of a column of numbers that keeps them instead of being cut into bins
NUMBER = re.compile(r"-?\d+(\.\d+)?")
WHOLE_NUMBER = re.compile(r"-?(0|[1-9]\d*)")
DATE = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?")
KINDS = ("category", "number", "date")


@dataclass(frozen=True)
class TableSource(Source):
    """A table of the user's: a file, or a DataFrame."""

    path: Annotated[str, PYTHON_ONLY] = ""
    """The file."""
    frame: Annotated[Any, PYTHON_ONLY] = None
    """The DataFrame."""
    bins: Annotated[int, Range(0)] = 32
    """Bins of a column of numbers with more than 64 values; 0 keeps every value as a class."""
    rare: Annotated[int, Range(0)] = 0
    """Let values in fewer than this many training rows share the class `other`."""
    other: bool = False
    """Give every column the class `other`, so that rows with values that the training rows lack can be scored."""
    missing: Annotated[tuple[str, ...], Flag(metavar="TEXT")] = ("", "?")
    """What stands for a missing value in a CSV file."""
    types: Annotated[tuple[str, ...], Flag(metavar="COLUMN=TYPE")] = ()
    """Types of columns, where the guess is wrong: zip=category, price=number, day=date."""
    drop: Annotated[tuple[str, ...], Flag(metavar="COLUMN")] = ()
    """Columns to leave out."""
    split: SplitSizes = None
    """TRAIN,VAL,TEST as fractions that sum to 1 or as counts; default 0.9,0.05,0.05."""
    shuffle: bool = True
    """Shuffle the rows before they are split."""
    shuffle_seed: Seed = 0
    """Seed of the shuffling."""
    strict: bool = False
    """Refuse rows with values that the table's columns do not know, instead of leaving them out."""
    schema: Annotated[Any, PYTHON_ONLY] = ()
    """The columns of a trained model's table, by which the rows are read."""

    key: ClassVar[str] = "table"
    usage: ClassVar[str] = "table:PATH"
    description: ClassVar[str] = "your own table: .csv, .tsv (plain or compressed) or .parquet; columns of any type"
    has_split: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"{self.key}:{self.path}" if self.path else self.key

    @property
    def short_name(self) -> str:
        return Path(self.path).name if self.path else "the DataFrame" if self.frame is not None else self.key

    def moved(self, move: Any) -> Source:
        return replace(self, path=move(self.path)) if self.path else self

    def for_model(self, spec: DataSpec, own: Source, split: str | None) -> Source:
        return replace(self, schema=spec.schema, split=split, shuffle=split != WHOLE and self.shuffle)

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        with progress("Reading the table", None):
            return load_table(self.read(), self)

    def read(self) -> "pd.DataFrame":
        """Return the DataFrame, or the file as one."""
        return self.frame if self.frame is not None else read_table(Path(self.path), self.missing)


def is_table(path: Path) -> bool:
    """Return whether the name of a file, which may be compressed, is that of a table."""
    ending = path.suffix.lower()
    inner = path.with_suffix("").suffix.lower() if ending in PACKED else ending
    return inner in ENDINGS or ending in ENDINGS


def pandas() -> Any:
    """Return the package pandas."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise ValueError("tables need packages; install them with: pip install 'unordinal[tables]'") from error
    return pd


def records(frame: "pd.DataFrame") -> list[dict[str, Any]]:
    """Return the rows of a DataFrame as plain values: None where one is missing, and dates without a time where no cell
    of the column has one.
    """
    times = frame.select_dtypes("datetime").columns
    dates = [name for name in times if (frame[name].dropna().dt.normalize() == frame[name].dropna()).all()]
    frame = frame.assign(**{name: frame[name].dt.strftime("%Y-%m-%d") for name in dates})
    found: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", date_format="iso"))
    return found


def read_table(path: Path, missing: tuple[str, ...]) -> "pd.DataFrame":
    """Read a file; the cells of a CSV file are texts, so that 007 stays 007."""
    pd, path = pandas(), path.expanduser().resolve()
    if path.suffix.lower() == ".parquet":
        try:
            return pd.read_parquet(path)
        except Exception as error:  # whatever pyarrow raises for a damaged file
            raise ValueError(f"{path} cannot be read as Parquet: {error}") from error
    file = TextFile.of(path)
    raw = b"".join(file.blocks(silent, "Reading")).removeprefix(b"\xef\xbb\xbf")  # a byte-order mark
    if not raw.strip():
        raise ValueError(f"{path} is empty; expected a header and rows below it")
    header = raw.partition(b"\n")[0].decode("utf-8", errors="replace")
    usual = "\t" if ".tsv" in path.suffixes else ","
    delimiter = next((mark for mark in (usual, ",", ";", "\t", "|") if mark in header), usual)
    names = [name.strip() for name in next(csv.reader([header.rstrip("\r")], delimiter=delimiter))]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if "" in names:
        raise ValueError(f"{path}: column {names.index('') + 1} has no name; give every column a name")
    if repeated:
        raise ValueError(f"{path}: two columns are called {repeated[0]!r}; give each a name of its own")
    if all(NUMBER.fullmatch(name) for name in names):
        raise ValueError(f"{path} has no header: its first row holds numbers; add a row of names")
    return parsed(raw, names, delimiter, path, missing)


def parsed(raw: bytes, names: list[str], delimiter: str, path: Path, missing: tuple[str, ...]) -> "pd.DataFrame":
    """Return the cells of a CSV file as texts, and missing ones as missing."""
    pandas()
    import pyarrow
    from pyarrow import csv as arrow

    options = {
        "read_options": arrow.ReadOptions(column_names=names, skip_rows=1),
        "parse_options": arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        "convert_options": arrow.ConvertOptions(
            column_types=dict.fromkeys(names, pyarrow.string()), strings_can_be_null=True, null_values=list(missing),
            quoted_strings_can_be_null=True,
        ),
    }  # fmt: skip
    try:
        frame = arrow.read_csv(pyarrow.BufferReader(raw), **options).to_pandas()
    except pyarrow.ArrowException as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} cannot be read as a table with {counted(len(names), 'column')}: {reason}") from error
    if not len(frame):
        raise ValueError(f"{path} has a header and no rows below it")
    return frame


def load_table(frame: "pd.DataFrame", asked: TableSource) -> Data:
    """Make a data set from a DataFrame: its columns become classes, and its rows are shuffled and split."""
    where = asked.path or "the DataFrame"
    names = [str(name) for name in frame.columns]
    if not names or not len(frame):
        raise ValueError(f"{where} has {counted(len(frame), 'row')} and {counted(len(names), 'column')}; expected both")
    if len(set(names)) < len(names):
        raise ValueError(f"two columns of {where} have the same name: {', '.join(names)}")
    frame = frame.set_axis(names, axis=1).reset_index(drop=True)
    for name in asked.drop:
        check_known("column", name, names)
    frame = frame.drop(columns=list(asked.drop))
    order = np.arange(len(frame))
    if asked.shuffle:
        order = np.random.default_rng(asked.shuffle_seed).permutation(len(frame))
    frame, notes = frame.iloc[order].reset_index(drop=True), []
    sizes = split_sizes(DEFAULT_SPLIT if asked.split is None else asked.split, len(frame), "rows")
    schema = asked.schema or tuple(column_of(frame[name], sizes[0], asked, where) for name in frame.columns)
    known = [column.name for column in schema]
    for name in known:
        if name not in frame.columns:
            raise ValueError(f"{where} has no column {name!r}; expected {', '.join(known)}")
    extra = [name for name in frame.columns if name not in known]
    if extra:
        expected = ", ".join(known)
        raise ValueError(f"{where} has a column {extra[0]!r} that the model lacks; remove it; expected {expected}")
    x = np.stack([column.encode(frame[column.name]) for column in schema], axis=1)
    is_known: Any = (x >= 0).all(axis=1)
    if not is_known.all():
        row, place = (int(v[0]) for v in np.nonzero(x < 0))
        value, left = frame[known[place]].iloc[row], int((~is_known).sum())
        found = f"{known[place]} has the value {str(value)[:40]!r}, which the training rows do not have"
        if asked.strict:
            raise ValueError(f"{where}, row {int(order[row]) + 1}: {found}")
        notes.append(f"{counted(left, 'row')} left out, the first since {found}")
        first, second = (int(np.sum(is_known[:end])) for end in (sizes[0], sizes[0] + sizes[1]))
        x = x[is_known]
        sizes = (first, second - first, len(x) - second)
    columns = tuple(len(column.classes) for column in schema)
    if max(columns) < 2:
        raise ValueError(f"every column of {where} is constant; there is nothing to learn")
    stored = x.astype(smallest_type(max(columns)))
    train, val, test = cut(stored, sizes, None)
    fingerprint = hashlib.sha256(stored.tobytes()).hexdigest()
    spec = DataSpec(asked.name, max(columns), (len(columns),), None, fingerprint, sizes, schema=schema)
    spec = replace(spec, columns=columns if len(set(columns)) > 1 else (), has_places=True)
    return Data(spec, train, val, test, tuple(notes), num_left_out=int((~is_known).sum()))


def column_of(series: "pd.Series[Any]", num_train: int, asked: TableSource, where: str) -> Column:
    """Return the classes of a column: values from all rows, and how often they occur from the training rows only."""
    name, wanted = str(series.name), dict(text.partition("=")[::2] for text in asked.types).get(str(series.name))
    if wanted is not None:
        check_known(f"type of {name}", wanted, KINDS)
    series, dtype = converted(series, wanted, where)
    has_missing = bool(series.isna().any())
    kept = series.dropna()
    is_number = dtype.lower().startswith(("int", "uint", "float", "datetime"))
    num_values = int(kept.nunique())
    most = min(FEW_VALUES, len(kept) // 2) if dtype.lower().startswith("float") else FEW_VALUES  # each at least twice
    if is_number and asked.bins and num_values > most and wanted != "category":
        step = step_of(numbers_of(kept, dtype)) or float(not dtype.lower().startswith("float"))
        bins = bins_of(kept, series.iloc[:num_train], dtype, asked.bins, step)
        return Column(name, dtype, bins=bins, has_other=asked.other, has_missing=has_missing, step=step)
    codes, texts = coded(series)
    if num_values == len(series) and num_values > FEW_VALUES and not is_number:
        raise ValueError(f"{where}: all values of {name} differ; leave the column out with `drop` {name}")
    if num_values > MAX_CLASSES:
        raise ValueError(f"{where}: {name} has {num_values:,} values; at most {MAX_CLASSES:,} can be classes")
    values = declared(series) or sorted(texts, key=sort_key)
    merged: list[str] = []
    if asked.rare:
        seen = np.bincount(codes[:num_train] + 1, minlength=len(texts) + 1)[1:]
        counts = dict(zip(texts, seen.tolist(), strict=True))
        merged = [value for value in values if counts.get(value, 0) < asked.rare]
        values = [value for value in values if counts.get(value, 0) >= asked.rare]
    if not values and not merged:
        return Column(name, dtype, has_other=asked.other, has_missing=True)  # nothing but missing values
    return Column(name, dtype, tuple(values), (), bool(merged) or asked.other, has_missing, tuple(merged))


def declared(series: "pd.Series[Any]") -> list[str] | None:
    """Return the categories of a categorical column, also those that do not occur; None for other columns."""
    if str(series.dtype) != "category":
        return None
    return [text_of(value) for value in series.cat.categories.tolist()]


def sort_key(text: str) -> tuple[int, float, str]:
    """Sort numbers by size and before other texts."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def converted(series: "pd.Series[Any]", wanted: str | None, where: str) -> tuple["pd.Series[Any]", str]:
    """Return a column in the type it is to have, and this type as a text."""
    pd = pandas()
    dtype = str(series.dtype)
    if dtype == "category":
        inner = str(series.cat.categories.dtype)
        return series, f"category[{inner}{';ordered' if series.cat.ordered else ''}]"
    if dtype not in ("object", "str", "string"):
        return series, dtype
    texts = series.dropna()
    different = texts.unique().tolist()
    if not all(isinstance(value, str) for value in different):
        raise ValueError(f"{where}: the column {series.name} holds {type(different[0]).__name__}, expected texts")
    if wanted != "category" and (wanted is not None or len(different) > FEW_VALUES):
        if all(WHOLE_NUMBER.fullmatch(value) for value in different):
            return pd.to_numeric(series).astype("Int64" if series.isna().any() else "int64"), "int64"
        if wanted == "date" or all(DATE.fullmatch(value) for value in different):
            return pd.to_datetime(series), "datetime64[ns]"
        numbers = pd.to_numeric(series, errors="coerce")
        if not bool((numbers.isna() & series.notna()).any()):
            return numbers.astype("float64"), "float64"
        if wanted == "number":
            wrong = series[numbers.isna() & series.notna()].iloc[0]
            raise ValueError(f"{where}: {series.name} is to be a number, but has {wrong!r}")
    return series, dtype
