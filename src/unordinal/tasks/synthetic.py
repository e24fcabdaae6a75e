"""Compare a synthetic table with a real one, next to tables whose quality is known."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from unordinal.data import frame_of
from unordinal.data.schema import Column
from unordinal.data.tables import TableSource, column_of
from unordinal.names import check_known
from unordinal.numerics import mutual_information
from unordinal.settings import Flag, Range, Request, Seed

if TYPE_CHECKING:
    import pandas as pd

TABLES = ("synthetic", "held-out", "independent", "copied")
FOLDS = 5
MEANINGS = {
    "columns": ("mean total variation of single columns", "low"),
    "pairs": ("mean total variation of pairs of columns", "low"),
    "classifier": ("how well gradient boosting tells the rows from real ones: area under the curve", "0.5"),
    "association": ("how alike the mutual information of pairs of columns is, weighted by its size", "1"),
    "utility": ("accuracy on real rows of a classifier of {target} that was trained on these rows", "high"),
    "coverage": ("share of the values of all columns that occur", "as held-out"),
    "repeated": ("share of the rows that stand in the training data", "as held-out"),
    "distance": ("mean share of the columns in which a row differs from the closest training row", "as held-out"),
}
"""What each figure means, and what is good."""
DISTANCE_ROWS = 512  # at a time, which bounds the memory


@dataclass(frozen=True)
class CompareTables(Request):
    """Compare a synthetic table with the real one that its model was trained on."""

    real: Annotated[Any, Flag(metavar="REAL")]
    """The real rows: a file, or a DataFrame."""
    synthetic: Annotated[Any, Flag(metavar="SYNTHETIC")]
    """The synthetic rows: a file, or a DataFrame with the same columns."""
    held_out: Annotated[Any, Flag(metavar="PATH")] = None
    """Real rows that the model was not trained on; default half of the real rows, drawn by the seed."""
    target: str | None = None
    """The column that a classifier predicts, once trained on synthetic and once on real rows; default the last."""
    rows: Annotated[int, Range(20)] = 5000
    """Compare at most this many rows of each table."""
    seed: Seed = 0
    """Seed of everything that is drawn."""


@dataclass(frozen=True)
class Figure:
    """One figure of every table."""

    name: str
    text: str  # what it means
    ideal: str  # what is good
    values: dict[str, float]  # by table

    @property
    def is_blind(self) -> bool:
        """Whether independent columns are about as good as held-out rows, so that the figure says little."""
        best, worst = self.values["held-out"], self.values["independent"]
        return abs(best - worst) <= 0.1 * max(abs(best), abs(worst), 0.05)


@dataclass(frozen=True)
class Fidelity:
    """The figures of a comparison."""

    figures: tuple[Figure, ...]
    columns: dict[str, float]  # total variation of each column of the synthetic table
    association: tuple[np.ndarray, np.ndarray]  # mutual information of pairs of columns, real and synthetic (D, D)
    target: str
    num_rows: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain values for JSON."""
        figures = {f.name: {**f.values, "ideal": f.ideal, "is_blind": f.is_blind} for f in self.figures}
        return {"figures": figures, "columns": self.columns, "target": self.target, "num_rows": self.num_rows}


def compare_tables(asked: CompareTables) -> Fidelity:
    """Compute all figures for the synthetic rows, and the same for held-out rows, independent columns and copied rows.

    Held-out rows are as good as can be. Independent columns have the right values and no association. Copied rows are
    training rows: perfect, and worthless. A figure that does not tell these apart is blind.
    """
    rng = np.random.default_rng(asked.seed)
    frames = [frame_of(part) for part in (asked.real, asked.synthetic)]
    held = None if asked.held_out is None else frame_of(asked.held_out)
    real, names = frames[0], list(frames[0].columns)
    for frame in (frames[1], *([] if held is None else [held])):
        for name in names:
            if name not in frame.columns:
                raise ValueError(f"the tables must have the same columns: {name!r} is missing in one of them")
    target = asked.target or names[-1]
    check_known("column", target, names)
    reader = TableSource(frame=real, other=True)
    schema = [column_of(real[name], len(real), reader, "the real table") for name in names]
    train, synthetic = encoded(real, schema), encoded(frames[1], schema)
    if held is None:
        order = rng.permutation(len(train))
        train, rest = train[order[: len(order) // 2]], train[order[len(order) // 2 :]]
    else:
        rest = rng.permutation(encoded(held, schema))
    if min(len(train), len(rest) // 2, len(synthetic)) < 2 * FOLDS:
        raise ValueError(f"a comparison needs at least {8 * FOLDS} real and {2 * FOLDS} synthetic rows")
    num = min(asked.rows, len(rest) // 2, len(synthetic), len(train))
    against, fresh = rest[:num], rest[num : 2 * num]
    columns = np.stack([rng.permutation(column) for column in train.T], axis=1)
    chosen = {"synthetic": rng.permutation(synthetic), "held-out": fresh, "independent": columns, "copied": train}
    tables = {name: chosen[name][:num] for name in TABLES}
    sizes, place = [len(column.classes) for column in schema], names.index(target)

    information = information_of(against, sizes)
    functions: dict[str, Callable[[np.ndarray], float]] = {
        "columns": lambda x: float(np.mean(column_distances(x, against, sizes))),
        "pairs": lambda x: pair_distance(x, against, sizes),
        "classifier": lambda x: two_sample_auc(x, against, asked.seed),
        "association": lambda x: association_of(information_of(x, sizes), information),
        "utility": lambda x: utility(x, against, place, asked.seed),
        "coverage": lambda x: coverage(x, against),
        "repeated": lambda x: repeated(x, train),
        "distance": lambda x: closest(x, train),
    }
    figures = []
    with asked.progress("Comparing", len(functions) * len(TABLES)) as advance:
        for name, function in functions.items():
            values = {}
            for table in TABLES:
                values[table] = function(tables[table])
                advance(1)
            text, ideal = MEANINGS[name]
            figures.append(Figure(name, text.format(target=target), ideal, values))
    each = dict(zip(names, column_distances(tables["synthetic"], against, sizes), strict=True))
    both = information, information_of(tables["synthetic"], sizes)
    return Fidelity(tuple(figures), each, both, target, {"compared": num, "training": len(train), "real": len(real)})


def encoded(frame: "pd.DataFrame", schema: list[Column]) -> np.ndarray:
    """Return the classes of rows (N, D); a missing value in a column that has none in the real table is `other`."""
    parts = [column.encode(frame[column.name]) for column in schema]
    return np.stack([np.where(x < 0, column.num_values, x) for x, column in zip(parts, schema, strict=True)], axis=1)


def column_distances(x: np.ndarray, y: np.ndarray, sizes: list[int]) -> list[float]:
    """Return the total variation between the values of each column of two tables."""
    shares = [[np.bincount(rows[:, c], minlength=k) / len(rows) for c, k in enumerate(sizes)] for rows in (x, y)]
    return [float(np.abs(a - b).sum() / 2) for a, b in zip(*shares, strict=True)]


def pairs(sizes: list[int]) -> list[tuple[int, int]]:
    return [(a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))]


def joint(x: np.ndarray, a: int, b: int, sizes: list[int]) -> np.ndarray:
    """Return the shares of the pairs of values of two columns: (K_a, K_b)."""
    counts = np.bincount(x[:, a].astype(np.int64) * sizes[b] + x[:, b], minlength=sizes[a] * sizes[b])
    return counts.reshape(sizes[a], sizes[b]) / len(x)


def pair_distance(x: np.ndarray, y: np.ndarray, sizes: list[int]) -> float:
    """Return the mean total variation between pairs of columns of two tables."""
    found = [np.abs(joint(x, a, b, sizes) - joint(y, a, b, sizes)).sum() / 2 for a, b in pairs(sizes)]
    return float(np.mean(found)) if found else 0.0


def information_of(x: np.ndarray, sizes: list[int]) -> np.ndarray:
    """Return the mutual information of all pairs of columns in nats, less the bias that counting adds to it: (D, D)."""
    found = np.zeros((len(sizes), len(sizes)))
    for a, b in pairs(sizes):
        found[a, b] = found[b, a] = max(0.0, mutual_information(x[:, a], x[:, b], (sizes[a], sizes[b])))
    return found


def association_of(x: np.ndarray, y: np.ndarray) -> float:
    """Return how alike two matrices of mutual information are: the mean of smaller over larger, weighted by y."""
    ratio = np.minimum(x, y) / np.maximum(np.maximum(x, y), 1e-12)
    return float((y * ratio).sum() / max(y.sum(), 1e-12))


def two_sample_auc(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Return the area under the curve of a classifier that tells the rows of two tables apart, cross-validated."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score
    from sklearn.model_selection import cross_val_predict

    rows, is_first = np.concatenate([x, y]), np.arange(len(x) + len(y)) < len(x)
    order = np.random.default_rng(seed).permutation(len(rows))
    model = HistGradientBoostingClassifier(random_state=0)
    found = cross_val_predict(model, rows[order], is_first[order], cv=FOLDS, method="predict_proba")
    return float(roc_auc_score(is_first[order], found[:, 1]))


def utility(x: np.ndarray, y: np.ndarray, place: int, seed: int) -> float:
    """Return the accuracy on y of a classifier of one column that was trained on x."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    others = [c for c in range(x.shape[1]) if c != place]
    if len(np.unique(x[:, place])) < 2 or not others:
        return float((y[:, place] == np.bincount(x[:, place]).argmax()).mean())
    model = HistGradientBoostingClassifier(random_state=seed % (1 << 31)).fit(x[:, others], x[:, place])
    return float((model.predict(y[:, others]) == y[:, place]).mean())


def coverage(x: np.ndarray, y: np.ndarray) -> float:
    """Return the share of the values of y, over all columns, that occur in x."""
    found = [np.isin(np.unique(b), a) for a, b in zip(x.T, y.T, strict=True)]
    return float(np.concatenate(found).mean())


def repeated(x: np.ndarray, train: np.ndarray) -> float:
    """Return the share of the rows of x that stand in the training data."""
    seen = {row.tobytes() for row in np.ascontiguousarray(train.astype(np.int32))}
    return float(np.mean([row.tobytes() in seen for row in np.ascontiguousarray(x.astype(np.int32))]))


def closest(x: np.ndarray, train: np.ndarray) -> float:
    """Return the mean share of columns in which a row of x differs from the closest training row."""
    num, least = min(len(x), 4 * DISTANCE_ROWS), []
    for begin in range(0, num, DISTANCE_ROWS):
        part = x[begin : min(num, begin + DISTANCE_ROWS)]
        differ = np.zeros((len(part), len(train)), np.int16)
        for column in range(x.shape[1]):
            differ += part[:, column : column + 1] != train[:, column]
        least.append(differ.min(axis=1))
    return float(np.concatenate(least).mean() / x.shape[1])
