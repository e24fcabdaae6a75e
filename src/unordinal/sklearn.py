"""Models of tables as scikit-learn estimators: densities and outliers, imputation, classification. Extra `tables`."""

import math
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, OneToOneFeatureMixin, OutlierMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from unordinal.api import fit
from unordinal.data.tables import TableSource
from unordinal.tasks.asking import Sample
from unordinal.tasks.cells import FillRows, cell_log_probs, fill_rows, read_rows
from unordinal.tasks.drawing import sample
from unordinal.tasks.suspicion import MeasureRows, row_bits

__all__ = ["CategoricalClassifier", "CategoricalDensity", "CategoricalImputer"]

TARGET = "(target)"  # the name of the column that a classifier predicts


class TableEstimator(BaseEstimator):
    """A base of estimators that fit a model to the rows of a table.

    Every column has the class `other` for values that the training rows lack, so that all rows can be scored.
    """

    def __init__(
        self, model: str = "arm", *, bins: int = 32, rare: int = 0, settings: Any = None, random_state: Any = None
    ):
        self.model = model
        self.bins = bins
        self.rare = rare
        self.settings = settings
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def frame_of(self, X: Any, *, reset: bool = False) -> pd.DataFrame:  # noqa: N803 (scikit-learn's name)
        """Check the rows and return them as a DataFrame."""
        if not reset:
            check_is_fitted(self)
        if isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X.set_axis([str(name) for name in X.columns], axis=1).reset_index(drop=True)
        rows = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        return pd.DataFrame(rows, columns=[f"x{place}" for place in range(rows.shape[1])]).infer_objects()

    def fit_frame(self, frame: pd.DataFrame) -> None:
        """Fit the model to a table, of which every tenth row chooses the best weights."""
        num = len(frame)
        if num < 2:
            raise ValueError(f"a model of a table needs at least 2 rows, got n_samples = {num}")
        seed = int(check_random_state(self.random_state).randint(1 << 31))
        bins = min(self.bins, round(2 * num ** (1 / 3)))  # small tables have fewer (Rice's rule)
        held = max(1, num // 10)
        table: Any = {"bins": bins, "rare": self.rare, "other": True, "split": f"{num - held},{held},0"}
        source = TableSource(frame=frame, shuffle_seed=seed, **table)
        run = fit(self.model, source, progress=False, **{"seed": seed, **(self.settings or {})})
        if not run.model.is_exact:
            raise ValueError(f"{self.model} has a bound, not a likelihood; use arm, chow-liu or independent")
        self.model_, self.spec_ = run.model, run.spec


class CategoricalDensity(OutlierMixin, TableEstimator):
    """The log-likelihood of rows, samples, and outliers: rows that are less likely than most.

    Args:
        model: a model with an exact likelihood: arm, chow-liu or independent.
        contamination: the share of the training rows that `predict` calls outliers.
        bins: the largest number of bins of a column of numbers; 0 keeps every value as a class.
        rare: let values in fewer than this many training rows share the class `other`.
        settings: further settings of `unordinal.fit`, such as {"minutes": 2}.
        random_state: the seed.

    >>> rows = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["p", "q"] * 50})
    >>> density = CategoricalDensity("chow-liu", random_state=0).fit(rows)
    >>> new = pd.DataFrame({"a": ["x", "x"], "b": ["p", "q"]})
    >>> density.score_samples(new).round(), density.predict(new)
    (array([-1., -8.]), array([ 1, -1]))
    """

    def __init__(
        self,
        model: str = "arm",
        *,
        contamination: float = 0.05,
        bins: int = 32,
        rare: int = 0,
        settings: Any = None,
        random_state: Any = None,
    ):
        super().__init__(model, bins=bins, rare=rare, settings=settings, random_state=random_state)
        self.contamination = contamination

    def fit(self, X: Any, y: Any = None) -> "CategoricalDensity":  # noqa: N803
        """Fit the model to rows."""
        if not 0 < self.contamination <= 0.5:
            raise ValueError(f"contamination must be above 0 and at most 0.5, got {self.contamination}")
        frame = self.frame_of(X, reset=True)
        self.is_frame_ = isinstance(X, pd.DataFrame)
        self.fit_frame(frame)
        self.offset_ = float(np.percentile(self.log_probs(frame), 100 * self.contamination))
        return self

    def log_probs(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the log-likelihood of the rows of a DataFrame."""
        known = read_rows(self.spec_, frame).known
        return -math.log(2) * row_bits(self.model_, self.spec_, known, MeasureRows(None)).numpy()

    def score_samples(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the log-likelihood of each row in nats; high is normal. Missing cells are summed out."""
        return self.log_probs(self.frame_of(X))

    def score(self, X: Any, y: Any = None) -> float:  # noqa: N803
        """Return the mean log-likelihood of rows in nats."""
        return float(self.score_samples(X).mean())

    def decision_function(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the log-likelihood of each row less the threshold of `predict`."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return 1 for rows that are normal and -1 for outliers."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draw rows, as a DataFrame if the model was fitted to one, else as an array."""
        check_is_fitted(self)
        seed = int(check_random_state(random_state).randint(1 << 31))
        drawn = sample(self.model_, self.spec_, Sample(n_samples, seed=seed))
        frame = self.spec_.frame(drawn.x, seed)
        return frame if self.is_frame_ else frame.to_numpy()


class CategoricalImputer(OneToOneFeatureMixin, TransformerMixin, TableEstimator):
    """Fill missing cells with their likeliest values given the rest of the row.

    The arguments are those of `CategoricalDensity`, without `contamination`.

    >>> rows = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["p", "q"] * 49 + ["p", None]})
    >>> CategoricalImputer("chow-liu").fit_transform(rows).tail(1).values.tolist()
    [['y', 'q']]
    """

    def fit(self, X: Any, y: Any = None) -> "CategoricalImputer":  # noqa: N803
        """Fit the model to rows, some cells of which may be missing."""
        self.fit_frame(self.frame_of(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Return the rows with their missing cells filled, in the form in which they came."""
        frame = self.frame_of(X)
        filled = frame
        if bool(frame.isna().any(axis=None)):
            filled = fill_rows(self.model_, self.spec_, FillRows(frame))[0]
            filled = filled.astype({name: kind for name, kind in frame.dtypes.items() if filled[name].dtype != kind})
        if isinstance(X, pd.DataFrame):
            return filled.set_axis(X.columns, axis=1).set_index(X.index)
        return filled.to_numpy()


class CategoricalClassifier(ClassifierMixin, TableEstimator):
    """Predict a class from a model of the rows and the class together: P(y | x) = P(x, y) / P(x).

    Cells of x may be missing; they are summed out. The arguments are those of `CategoricalDensity`, without
    `contamination`.

    >>> rows = pd.DataFrame({"a": ["x", "y"] * 50})
    >>> CategoricalClassifier("chow-liu").fit(rows, ["p", "q"] * 50).predict(rows.head(2))
    array(['p', 'q'], dtype='<U1')
    """

    def fit(self, X: Any, y: Any) -> "CategoricalClassifier":  # noqa: N803
        """Fit the model to rows and their classes."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        frame = self.frame_of(X, reset=True)
        target = check_array(column_or_1d(y, warn=True), ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(target)
        check_consistent_length(frame, target)
        self.classes_, codes = np.unique(target, return_inverse=True)
        names = [str(code) for code in range(len(self.classes_))]
        self.fit_frame(frame.assign(**{TARGET: pd.Categorical.from_codes(codes, names)}))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each class, (N, number of classes), in the order of `classes_`."""
        frame = self.frame_of(X)
        known = read_rows(self.spec_, frame).known
        (log_p,) = cell_log_probs(self.model_, self.spec_, known, [known.shape[1] - 1], MeasureRows(None).batch_size)
        return torch.softmax(log_p[:, : len(self.classes_)], dim=-1).numpy()

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the likeliest class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]
