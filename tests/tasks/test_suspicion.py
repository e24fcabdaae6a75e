"""Surprising rows and the likeliest errors in them, against the enumerated distribution of a tree."""

import numpy as np
import pandas as pd
import pytest
import torch
from animals import animals, enumerated

from unordinal.api import Run, fit
from unordinal.tasks.cells import read_rows
from unordinal.tasks.suspicion import MeasureRows, measure_rows, suspicious_cells


@pytest.fixture(scope="module")
def tree() -> Run:
    return fit("chow-liu", animals(), progress=False)


def test_rows_and_cells_are_ranked_by_their_surprise(tree: Run) -> None:
    rows = pd.DataFrame({"kind": ["frog"] * 5 + ["toad"], "colour": ["green"] * 5 + ["green"], "legs": [4] * 6})
    found, _ = measure_rows(tree.model, tree.spec, MeasureRows(rows))
    assert found["row"].iloc[0] == 6  # a green toad
    assert found["cell"].iloc[0] in ("kind", "colour")
    assert found["bits"].is_monotonic_decreasing
    known = read_rows(tree.spec, rows).known
    expected = -tree.model.elbo(known).double() / np.log(2)
    np.testing.assert_allclose(np.sort(found["bits"]), np.sort(expected.numpy()), rtol=1e-5)
    gone = rows.assign(legs=pd.Series([None] * 6, dtype="Int64"))
    summed, _ = measure_rows(tree.model, tree.spec, MeasureRows(gone, cells=0))
    events, p = enumerated(tree)
    given = known[5].clone()
    given[2] = -1
    fits = ((given < 0) | (events == given)).all(dim=1)
    bits = float(summed.loc[summed["row"] == 6, "bits"].iloc[0])
    assert bits == pytest.approx(-float(p[fits].sum().log2()), rel=1e-5)


def test_the_odds_of_an_error_are_those_of_the_enumerated_distribution(tree: Run) -> None:
    events, p = enumerated(tree)
    has_legs = events[:, 2] < 2  # the class of missing values counts as unknown
    events, p = events[has_legs], p[has_legs] / p[has_legs].sum()
    known = torch.tensor([[1, 1, 1], [0, 2, 0], [2, 0, 1]])
    found = suspicious_cells(tree.model, tree.spec, known, MeasureRows(None))

    def share(given: dict[int, int]) -> float:
        fits = torch.stack([events[:, place] == value for place, value in given.items()]).all(dim=0)
        return float(p[fits].sum())

    for row, values in enumerate(known.tolist()):
        for cell in range(3):
            own, odds = values[cell], []
            others = [place for place in range(3) if place != cell]
            usual = {v: share({cell: v}) for v in range((3, 3, 2)[cell])}
            for hidden in others:
                given = {place: values[place] for place in others if place != hidden}
                right = {v: share({cell: v, **given}) / share(given) for v in usual}
                wrong = sum(right[v] * usual[own] / (1 - usual[v]) for v in usual if v != own)
                odds.append(wrong / right[own])
            mean = 2 / sum(1 / each for each in odds)
            assert float(found.log_odds[row, cell]) == pytest.approx(np.log2(mean), rel=1e-4, abs=1e-4)
            given = {place: values[place] for place in others}
            bits = {v: -np.log2(share({cell: v, **given}) / share(given)) for v in usual}
            usual_bits = sum(each * 2**-each for each in bits.values())
            assert float(found.bits[row, cell]) == pytest.approx(bits[own], rel=1e-4)
            assert float(found.excess[row, cell]) == pytest.approx(bits[own] - usual_bits, rel=1e-4, abs=1e-4)


def test_of_two_wrong_cells_one_is_named() -> None:
    kind = np.random.default_rng(0).integers(0, 2, 2000)
    frame = pd.DataFrame({name: np.where(kind == 0, "a", "b") for name in "uvwxyz"})
    frame["noise"] = np.random.default_rng(1).choice(list("pqrs"), 2000)
    run = fit("chow-liu", frame, progress=False)
    rows = pd.DataFrame([["a", "b", "a", "a", "b", "a", "p"]] * 2, columns=frame.columns)
    rows.loc[1] = ["b", "b", "a", "b", "b", "b", None]
    found, _ = measure_rows(run.model, run.spec, MeasureRows(rows))
    named = found.set_index("row")["cell"]
    assert named[1] in ("v", "y")
    assert named[2] == "w"
    assert (found["log_odds"] > 3).all()


def test_unknown_values_are_left_out_of_bits_named_and_counted(tree: Run) -> None:
    rows = animals().iloc[:6].assign(kind=["frog", "dragon", "toad", "newt", "elf", "frog"])
    found, read = measure_rows(tree.model, tree.spec, MeasureRows(rows, cells="all"))
    assert sorted(found["row"]) == [1, 3, 4, 6]
    assert read.num_left_out == 2
    assert "row 2: kind has the value 'dragon'" in read.note
    with pytest.raises(ValueError, match="row 2: kind has the value 'dragon'"):
        measure_rows(tree.model, tree.spec, MeasureRows(rows, strict=True))
    other = fit("chow-liu", animals(), other=True, progress=False)  # the class `other` takes them
    assert len(measure_rows(other.model, other.spec, MeasureRows(rows))[0]) == 6
