"""Cells of tables: predictions, fillings and surprises against the enumerated distribution of a tree."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from animals import animals, enumerated

from unordinal.api import Run, fit
from unordinal.tasks.cells import FillRows, Predict, fill_rows, predict, read_rows
from unordinal.tasks.suspicion import MeasureRows, measure_rows


@pytest.fixture(scope="module")
def tree() -> Run:
    return fit("chow-liu", animals(), progress=False)


def test_a_column_is_predicted_from_the_others_and_never_as_missing(tree: Run) -> None:
    events, p = enumerated(tree)
    rows = pd.DataFrame({"kind": ["frog", None], "colour": ["green", "brown"]})  # without the column itself
    found, _ = predict(tree.model, tree.spec, Predict(rows, "legs"))
    assert list(found.columns) == ["3", "4"]
    np.testing.assert_allclose(found.sum(axis=1), 1)
    known = read_rows(tree.spec, rows).known
    for row, given in enumerate(known):
        fits = ((given < 0) | (events == given)).all(dim=1)
        each = torch.stack([p[fits & (events[:, 2] == k)].sum() for k in range(2)])
        np.testing.assert_allclose(found.iloc[row], (each / each.sum()).numpy(), rtol=1e-5)


@pytest.mark.parametrize("how", ["best", "draw"])
def test_missing_cells_are_filled_and_others_stay(how: Any, tree: Run) -> None:
    rows = animals().iloc[:200]
    holed = rows.assign(colour=rows["colour"].where(np.arange(200) % 2 == 0, None))
    filled, num = fill_rows(tree.model, tree.spec, FillRows(holed, how=how))
    assert num == 100 + int(rows["legs"].isna().sum())
    assert not filled.isna().any().any()
    assert filled["kind"].tolist() == rows["kind"].tolist()
    assert filled["colour"][::2].tolist() == rows["colour"][::2].tolist()
    right = float((filled["colour"][1::2] == rows["colour"][1::2]).mean())
    assert right > (0.8 if how == "best" else 0.6)


def test_probabilities_of_missing_cells_are_listed_and_agree_with_predictions(tree: Run) -> None:
    rows = animals().iloc[:40].assign(legs=4)
    holed = rows.assign(colour=rows["colour"].where(np.arange(40) % 4 > 0, None))
    listed, num = fill_rows(tree.model, tree.spec, FillRows(holed, how="probabilities"))
    assert num == 10
    assert len(listed) == 10 * 3
    np.testing.assert_allclose(listed.groupby("row")["probability"].sum(), 1)
    expected, _ = predict(tree.model, tree.spec, Predict(holed, "colour"))
    for row, part in listed.groupby("row"):
        np.testing.assert_allclose(part["probability"], expected.iloc[int(str(row)) - 1][part["value"]])


def test_what_cannot_be_done_is_refused(tree: Run) -> None:
    rows = animals().iloc[:5]
    with pytest.raises(ValueError, match=r"unknown column 'colr'; did you mean colour\?"):
        predict(tree.model, tree.spec, Predict(rows, "colr"))
    with pytest.raises(ValueError, match="row 1: kind has the value 'dragon'"):
        predict(tree.model, tree.spec, Predict(rows.assign(kind="dragon"), "colour"))
    whole = rows.assign(legs=4)
    with pytest.raises(ValueError, match="nothing to fill"):
        fill_rows(tree.model, tree.spec, FillRows(whole))
    small: Any = {"net.width": 8, "net.num_heads": 1}
    given = fit("arm", animals(), order="given", steps=1, progress=False, **small)
    with pytest.raises(ValueError, match="has no distribution of one column given others"):
        predict(given.model, given.spec, Predict(rows, "colour"))
    with pytest.raises(ValueError, match="expected a table"):
        read_rows(tree.spec, np.zeros((3, 3), int))


@pytest.mark.parametrize("name", ["arm", "absorbing"])
def test_networks_predict_fill_and_measure(name: str) -> None:
    small: Any = {"net.width": 16, "net.num_heads": 1, "net.num_blocks": 1}
    run = fit(name, animals(), steps=150, progress=False, **small)
    rows = animals().iloc[:50]
    found, _ = predict(run.model, run.spec, Predict(rows, "colour"))
    assert float((found.idxmax(axis=1).to_numpy() == rows["colour"].to_numpy()).mean()) > 0.7
    assert fill_rows(run.model, run.spec, FillRows(rows))[1] == int(rows["legs"].isna().sum())
    assert len(measure_rows(run.model, run.spec, MeasureRows(rows))[0]) == 50
