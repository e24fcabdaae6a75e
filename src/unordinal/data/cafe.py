"""A generated table of orders in a café, with dependent columns, numbers, a date and missing cells; no real data."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from unordinal.data.tables import TableSource, pandas
from unordinal.settings import Range

if TYPE_CHECKING:
    import pandas as pd

DRINKS = ("espresso", "cappuccino", "tea", "lemonade", "iced coffee", "hot chocolate")
PRICES = np.array([2.2, 3.4, 2.6, 3.1, 3.9, 3.6])
# how much each drink is liked on cold, mild and hot days
TASTE = np.array([[3, 4, 4, 0.2, 0.1, 3], [4, 4, 2, 1, 1, 1], [3, 1, 0.5, 5, 5, 0.1]])


@dataclass(frozen=True)
class CafeSource(TableSource):
    """Orders in a café, generated."""

    num_rows: Annotated[int, Range(10)] = 6000
    """How many orders."""
    rows_seed: Annotated[int, Range(0)] = 0
    """Seed of the orders."""

    key: ClassVar[str] = "cafe"
    usage: ClassVar[str] = "cafe"
    description: ClassVar[str] = "generated orders in a café: a table to try things with"

    def read(self) -> "pd.DataFrame":
        return cafe_orders(self.num_rows, self.rows_seed)

    def for_model(self, spec: object, own: object, split: str | None) -> "CafeSource":
        return replace(self, schema=getattr(spec, "schema", ()), split=split)


def cafe_orders(num: int, seed: int = 0) -> "pd.DataFrame":
    """Return generated orders.

    >>> list(cafe_orders(3).columns)
    ['day', 'weather', 'visitor', 'drink', 'size', 'pastry', 'payment', 'price', 'rating']
    """
    rng, frame = np.random.default_rng(seed), pandas().DataFrame
    season = rng.integers(0, 365, num)
    heat = -np.cos(2 * np.pi * (season - 15) / 365) + 0.4 * rng.standard_normal(num)
    weather = np.digitize(heat, (-0.4, 0.5))
    visitor = rng.choice(3, num, p=(0.5, 0.3, 0.2))  # regular, tourist, student
    taste = TASTE[weather] * np.array([[2, 1, 1, 1, 1, 1], [1, 1.5, 1, 1.5, 1, 1], [1, 1, 2, 1, 1.5, 1]])[visitor]
    drink = (taste.cumsum(axis=1) < rng.random((num, 1)) * taste.sum(axis=1, keepdims=True)).sum(axis=1)
    size = rng.binomial(2, np.where(drink == 0, 0.05, 0.3 + 0.2 * (visitor == 1)))
    pastry = np.where(rng.random(num) < 0.35 + 0.25 * (visitor == 1), rng.integers(1, 4, num), 0)
    card = rng.random(num) < np.array([0.55, 0.9, 0.75])[visitor]
    price = np.round(PRICES[drink] * (1 + 0.25 * size) + 2.4 * (pastry > 0) + 0.1 * rng.integers(-2, 3, num), 2)
    rating = np.clip(np.round(4.2 - 0.25 * (price - 5) + 0.8 * rng.standard_normal(num)), 1, 5)
    is_unknown = rng.random(num) < 0.05
    days = np.datetime64("2025-01-01") + season.astype("timedelta64[D]")
    return frame({
        "day": days.astype("datetime64[ns]"),
        "weather": np.array(["cold", "mild", "hot"])[weather],
        "visitor": np.array(["regular", "tourist", "student", None], object)[np.where(is_unknown, 3, visitor)],
        "drink": np.array(DRINKS)[drink],
        "size": np.array(["small", "medium", "large"])[size],
        "pastry": np.array(["none", "croissant", "muffin", "cake"])[pastry],
        "payment": np.where(card, "card", "cash"),
        "price": price,
        "rating": frame({"r": np.where(rng.random(num) < 0.3, np.nan, rating)})["r"].astype("Int64"),
    })  # fmt: skip
