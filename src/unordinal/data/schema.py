"""The columns of a table: how values become classes, and classes values again."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unordinal.names import unknown

if TYPE_CHECKING:
    import pandas as pd

MISSING, OTHER = "(missing)", "(other)"  # how the two special classes are shown


@dataclass(frozen=True)
class Column:
    """A column and its classes: one for each value, or one for each bin of a number; then `other`, then `missing`.

    Args:
        name: the name of the column.
        dtype: the type of its values in pandas; for categories also the type of these, as in category[str].
        values: the values that have a class, as texts; empty if numbers are cut into bins.
        bins: the smallest and the largest value of each class; a value with a class of its own is both.
        has_other: whether rare values, and values that the training rows lack, share a class.
        has_missing: whether values may be missing.
        merged: the values that share the class `other`.
        step: of numbers in bins, the step between possible values: 1 for whole numbers, 0.01 for prices, a day for
            dates (in microseconds); 0 if any number may occur.

    >>> Column("size", "str", ("l", "s"), has_missing=True).classes
    ('l', 's', '(missing)')
    """

    name: str
    dtype: str
    values: tuple[str, ...] = ()
    bins: tuple[tuple[float, float], ...] = ()
    has_other: bool = False
    has_missing: bool = False
    merged: tuple[str, ...] = ()
    step: float = 0.0

    @staticmethod
    def from_dict(values: dict[str, Any]) -> "Column":
        """Return the column whose fields, as plain values, are `values`."""
        lists = {name: tuple(values[name]) for name in ("values", "merged")}
        bins = tuple((float(low), float(high)) for low, high in values["bins"])
        return Column(**{**values, **lists, "bins": bins})

    @property
    def is_whole(self) -> bool:
        """Whether the numbers of bins are whole: integers, or dates as numbers."""
        return "int" in self.dtype.lower() or self.is_date

    @property
    def is_date(self) -> bool:
        return self.dtype.startswith("datetime")

    @property
    def spacing(self) -> float:
        """The step between possible numbers, at least 1 for whole numbers; 0 if any number may occur."""
        return self.step or float(self.is_whole)

    @property
    def num_values(self) -> int:
        """The number of classes without `other` and `missing`."""
        return len(self.values) or len(self.bins)

    @property
    def missing(self) -> int | None:
        """The class of missing values."""
        return self.num_values + self.has_other if self.has_missing else None

    @property
    def classes(self) -> tuple[str, ...]:
        """What each class is called."""
        own = self.values or tuple(self.shown(*bounds) for bounds in self.bins)
        return (*own, *[OTHER] * self.has_other, *[MISSING] * self.has_missing)

    def shown(self, low: float, high: float) -> str:
        """Return a bin as a text."""
        first, last = (str(self.parsed(edge)) if self.is_date else f"{edge:.12g}" for edge in (low, high))
        return first if low == high else f"{first} to {last}"

    def parsed(self, number: float) -> Any:
        """Return a value of a bin: a whole number, a number or a date."""
        import pandas as pd

        return pd.Timestamp(int(number), unit="us") if self.is_date else int(number) if self.is_whole else float(number)

    def number(self, text: str) -> float:
        """Return a number that a user names, or a date as a number; raise a ValueError if it is neither."""
        return float(np.datetime64(text, "us").astype(np.int64)) if self.is_date else float(text)

    @property
    def numbers(self) -> tuple[float, ...] | None:
        """The numbers that the values or bins stand for; None if some are not numbers, or if there are at most two."""
        try:
            found = tuple((low + high) / 2 for low, high in self.bins) or tuple(self.number(v) for v in self.values)
        except ValueError:
            return None
        return found if len(found) > 2 and all(map(math.isfinite, found)) else None

    def encode(self, series: "pd.Series[Any]") -> np.ndarray:
        """Return the classes of values: (N,) int64, -1 for values that have no class."""
        is_missing = series.isna().to_numpy()
        unseen = self.num_values if self.has_other else -1
        if self.bins:
            found = self.binned(numbers_of(series, self.dtype), is_missing)
            found = np.where(found < 0, unseen, found)
        else:
            index = {value: number for number, value in enumerate(self.values)}
            index |= dict.fromkeys(self.merged, self.num_values)
            codes, texts = coded(like_numbers(series, self.dtype))
            found = np.array([*(index.get(text, unseen) for text in texts), -1], np.int64)[codes]
        return np.where(is_missing, -1 if self.missing is None else self.missing, found)

    def binned(self, numbers: np.ndarray, is_missing: np.ndarray) -> np.ndarray:
        """Return the bins of numbers, -1 beyond the smallest and the largest."""
        lows, highs = (np.array(part, np.float64) for part in zip(*self.bins, strict=True))
        safe = np.where(is_missing, lows[0], numbers)
        place = np.searchsorted(lows, safe, side="right") - 1
        is_between = (place >= 0) & (place < len(lows) - 1) & (safe > highs[place.clip(min=0)])
        # a number between two bins belongs to the one below it, or above if that one is a single value
        place = place + (is_between & (lows == highs)[place.clip(min=0)])
        inside = (place >= 0) & np.where(is_between, (lows < highs)[place], safe <= highs[place])
        return np.where(inside & (safe >= lows[0]), place, -1).astype(np.int64)

    def decode(self, classes: np.ndarray, rng: np.random.Generator) -> "pd.Series[Any]":
        """Return the values of classes; those of a bin are drawn uniformly, those of `other` from the merged values."""
        import pandas as pd

        classes = np.asarray(classes)
        if self.bins:
            lows, highs = (np.array(part, np.float64) for part in zip(*self.bins, strict=True))
            place = classes.clip(max=len(lows) - 1)
            low, high, u = lows[place], highs[place], rng.random(len(classes))
            drawn = low + u * (high - low)
            if self.spacing:
                steps = np.floor(u * (np.round((high - low) / self.spacing) + 1))
                drawn = np.round(low + steps * self.spacing, decimals_of(self.spacing))
            series = pd.Series(pd.to_datetime(drawn.astype(np.int64), unit="us") if self.is_date else drawn)
        else:
            table = np.array([*self.values, *[OTHER] * self.has_other] or [OTHER], dtype=object)
            picked = table[classes.clip(max=len(table) - 1)]
            if self.merged:
                is_other = classes == self.num_values
                picked[is_other] = rng.choice(np.array(self.merged, dtype=object), int(is_other.sum()))
            series = from_texts(picked, self.dtype)
        if self.missing is not None:
            series = series.mask(classes == self.missing)
        if self.bins and self.has_other:
            series = series.mask(classes == self.num_values)  # a number beyond all bins: it cannot be drawn
        return typed(series, self)

    def log_widths(self) -> np.ndarray:
        """Return the log of how many values, or how wide a range, each class stands for: (K,)."""
        extra = [0.0] * (self.has_other + self.has_missing)
        unit = self.spacing if self.is_whole else 1.0  # whole numbers and dates are counted, other numbers measured
        sizes = [(high - low + self.spacing) / unit if high > low else 1.0 for low, high in self.bins]
        return np.array([*(math.log(size) for size in sizes), *([0.0] * len(self.values)), *extra])

    def class_of(self, text: str) -> int:
        """Return the class of a value that a user names."""
        names = self.classes
        if text in names:
            return names.index(text)
        if self.bins:
            try:
                number = self.number(text)
            except ValueError:
                number = math.inf
            found = int(self.binned(np.array([number]), np.array([False]))[0])
            if found >= 0:
                return found
        raise unknown(f"value of {self.name}", text, names)


def decimals_of(step: float) -> int:
    """Return how many decimals the multiples of a step have.

    >>> decimals_of(0.05), decimals_of(0.001), decimals_of(7.0)
    (2, 3, 0)
    """
    return next(number for number in range(20) if number == 19 or round(step, number) == step)


def like_numbers(series: "pd.Series[Any]", dtype: str) -> "pd.Series[Any]":
    """Return numbers in a type whose texts match those of `dtype`: pandas reads whole numbers with gaps as floats."""
    has_floats, lowered = series.dtype.kind == "f", dtype.lower()
    if has_floats and "int" in lowered and bool((series.dropna() % 1 == 0).all()):
        return series.astype("Int64")
    return series.astype("Float64") if "float" in lowered and series.dtype.kind in "iu" else series


def coded(series: "pd.Series[Any]") -> tuple[np.ndarray, list[str]]:
    """Return the number of each value among the different ones (N,), -1 if it is missing, and these as texts."""
    import pandas as pd

    codes, values = pd.factorize(series)
    return np.asarray(codes), [text_of(value) for value in values.tolist()]


def text_of(value: Any) -> str:
    """Return a value as a text from which `from_texts` makes the same value again."""
    if isinstance(value, float):
        return repr(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def from_texts(texts: np.ndarray, dtype: str) -> "pd.Series[Any]":
    """Return the values that `text_of` wrote, as objects of Python."""
    import pandas as pd

    inner = dtype[len("category[") : -1].partition(";")[0] if dtype.startswith("category[") else dtype
    lowered = inner.lower()
    convert: Any = str
    if "int" in lowered:
        convert = int
    elif "float" in lowered:
        convert = float
    elif "bool" in lowered:
        convert = {"True": True, "False": False}.get
    elif lowered.startswith("datetime"):
        convert = pd.Timestamp
    values = [None if text == OTHER and convert is not str else convert(text) for text in texts.tolist()]
    return pd.Series(values, dtype=object)


def typed(series: "pd.Series[Any]", column: Column) -> "pd.Series[Any]":
    """Return values in the type of their column; a type that cannot hold missing values becomes one that can."""
    import pandas as pd

    dtype = column.dtype
    if dtype.startswith("category["):
        inner, _, order = dtype[len("category[") : -1].partition(";")
        categories = from_texts(np.array(column.values, dtype=object), inner).astype(inner)
        return pd.Series(pd.Categorical(series, categories=pd.Index(categories), ordered=order == "ordered"))
    if series.isna().any() and dtype in ("int64", "int32", "int16", "int8", "uint8", "bool"):
        dtype = "boolean" if dtype == "bool" else "Int64"
    if column.bins and column.is_whole and not column.is_date:
        series = series.round()
    return series.astype(dtype) if dtype != "object" else series.astype(object)


def numbers_of(series: "pd.Series[Any]", dtype: str) -> np.ndarray:
    """Return numbers, or dates as microseconds, as float64, which is exact for them; NaN if they are missing."""
    import pandas as pd

    if dtype.startswith("datetime"):
        dates = pd.to_datetime(series)
        return np.where(dates.isna(), np.nan, dates.astype("datetime64[us]").astype("int64", errors="ignore"))
    return pd.to_numeric(series, errors="coerce").astype("float64").to_numpy()
