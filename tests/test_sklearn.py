"""The estimators follow scikit-learn's conventions, and their scores are those of the models."""

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from unordinal.sklearn import CategoricalClassifier, CategoricalDensity, CategoricalImputer, TableEstimator

SMALL: dict[str, Any] = {"steps": 60, "net.width": 16, "net.num_blocks": 1, "net.num_heads": 1}
KINDS: list[Any] = [CategoricalDensity, CategoricalImputer, CategoricalClassifier]


@parametrize_with_checks([kind("chow-liu") for kind in KINDS])
def test_all_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    """None of them is expected to fail."""
    check(estimator)


def animals(num: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["frog", "toad", "newt"], num)
    colour = np.where(rng.random(num) < 0.9, np.where(kind == "frog", "green", "brown"), "red")
    return pd.DataFrame({"kind": kind, "colour": colour, "legs": rng.choice([3, 4], num, p=[0.1, 0.9])})


def densities() -> list[CategoricalDensity]:
    return [CategoricalDensity("chow-liu", random_state=0), CategoricalDensity(settings=SMALL, random_state=0)]


@pytest.mark.parametrize("density", densities(), ids=["chow-liu", "arm"])
def test_likelihoods_of_all_rows_sum_to_one_and_missing_cells_are_summed_out(density: CategoricalDensity) -> None:
    density.fit(animals())
    kinds, colours = ["frog", "toad", "newt", "unknown"], ["green", "brown", "red", "unknown"]
    every = pd.DataFrame(itertools.product(kinds, colours, [3, 4, 77]), columns=["kind", "colour", "legs"])
    p = np.exp(density.score_samples(every))
    assert p.sum() == pytest.approx(1, abs=1e-4)
    hidden = every.assign(colour=None).drop_duplicates()
    summed = every.assign(p=p).groupby(["kind", "legs"], sort=False)["p"].sum().to_numpy()
    if density.model == "chow-liu":
        np.testing.assert_allclose(np.exp(density.score_samples(hidden)), summed, rtol=1e-6)
    assert np.exp(density.score_samples(hidden)).sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("density", densities(), ids=["chow-liu", "arm"])
def test_scores_do_not_depend_on_the_other_rows_and_survive_pickling(density: CategoricalDensity) -> None:
    rows = animals()
    density.fit(rows)
    found = density.score_samples(rows)
    np.testing.assert_allclose(density.score_samples(rows.iloc[[7, 3]]), found[[7, 3]], rtol=1e-5)
    again = pickle.loads(pickle.dumps(density))
    np.testing.assert_array_equal(again.score_samples(rows), found)
    assert density.score(rows) == pytest.approx(found.mean())
    pd.testing.assert_frame_equal(density.sample(5, random_state=1), again.sample(5, random_state=1))


def test_outliers_are_unlikely_rows() -> None:
    density = CategoricalDensity("chow-liu", contamination=0.1).fit(animals())
    strange = pd.DataFrame({"kind": ["frog", "dragon"], "colour": ["brown", "green"], "legs": [3, 4]})
    assert density.predict(strange).tolist() == [-1, -1]
    assert 0.0 < float((density.predict(animals()) == -1).mean()) <= 0.1
    with pytest.raises(ValueError, match="contamination must be above 0 and at most"):
        CategoricalDensity("chow-liu", contamination=0.7).fit(animals())
    with pytest.raises(ValueError, match="absorbing has a bound, not a likelihood; use arm"):
        CategoricalDensity("absorbing", settings=SMALL).fit(animals())


def test_an_imputer_keeps_what_is_there_and_fills_the_rest() -> None:
    rows = animals()
    holed = rows.assign(colour=rows["colour"].where(rows.index % 3 > 0, None)).set_index(rows.index + 1000)
    filled = CategoricalImputer("chow-liu").fit_transform(holed)
    assert filled.index.equals(holed.index)
    assert not filled.isna().any().any()
    assert filled["colour"][rows.index % 3 > 0].tolist() == rows["colour"][rows.index % 3 > 0].tolist()
    assert float((filled["colour"].to_numpy() == rows["colour"].to_numpy()).mean()) > 0.9
    assert filled.dtypes.equals(holed.dtypes)


def test_a_classifier_predicts_and_works_in_pipelines_and_searches() -> None:
    rows = animals()
    x, y = rows[["colour", "legs"]], rows["kind"] == "frog"
    classifier = CategoricalClassifier("chow-liu")
    assert cross_val_score(clone(classifier), x, y, cv=3).mean() > 0.85
    pipeline = make_pipeline(FunctionTransformer(), classifier).fit(x, y)
    p = pipeline.predict_proba(x.assign(legs=None))  # a missing cell is summed out
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (pipeline.predict(x)[rows["colour"] == "green"]).all()
    assert issubclass(CategoricalClassifier, TableEstimator)
