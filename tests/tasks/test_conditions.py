"""Conditions on columns: what they mean, what is drawn, and what is refused."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from unordinal.api import Run, fit
from unordinal.tasks.asking import Sample
from unordinal.tasks.conditions import conditions_of
from unordinal.tasks.drawing import sample


def people(num: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    age = rng.integers(17, 117, num)
    income = np.where(rng.random(num) < age / 150, ">50K", "<=50K")
    return pd.DataFrame({"age": age, "income": income, "legs": rng.integers(1, 4, num)})


@pytest.fixture(scope="module")
def tree() -> Run:
    return fit("chow-liu", people(), bins=5, progress=False)


def test_equal_values_are_known_and_ranges_are_sets(tree: Run) -> None:
    found = conditions_of(tree.spec, ("income=>50K", "legs>=2"))
    assert found.known.tolist() == [-1, tree.spec.schema[1].values.index(">50K"), -1]
    assert found.allowed[2].tolist() == [False, True, True]
    edge = int(tree.spec.schema[0].bins[2][0])
    assert conditions_of(tree.spec, (f"age>={edge}",)).allowed[0].tolist() == [False, False, True, True, True]
    assert conditions_of(tree.spec, ("legs>2",)).known.tolist() == [-1, -1, 2]
    assert conditions_of(tree.spec, ("legs!=2",)).allowed[2].tolist() == [True, False, True]


def test_rows_follow_the_conditional_distribution(tree: Run) -> None:
    """A tree's distribution is enumerated; some conditions are given to it, others rejected."""
    sizes = tree.model.classes.columns
    events = torch.tensor(list(itertools.product(*(range(k) for k in sizes))))
    p = tree.model.elbo(events).double().exp()
    for where in (("income=>50K", "legs>=2"), ("legs=1",), ("legs>=2",)):
        conditions = conditions_of(tree.spec, where)
        fits = conditions.hold(events) & ((conditions.known < 0) | (events == conditions.known)).all(dim=1)
        drawn = sample(tree.model, tree.spec, Sample(8000, where=where))
        share = (drawn.x.unsqueeze(1) == events[fits].unsqueeze(0)).all(-1).double().mean(0)
        assert float(share.sum()) == pytest.approx(1)
        assert float((share - p[fits] / p[fits].sum()).abs().max()) < 4.5 * math.sqrt(0.25 / 8000)
        assert drawn.accepted is not None


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("incme=>50K", r"unknown column 'incme'; did you mean income\?"),
        ("income=50K", "unknown value of income '50K'"),
        ("income>=3", "is for columns of numbers"),
        ("age", "takes conditions such as income=<=50K, got .age."),
        ("age>=30", r"'age>=30' cuts the bin \d+ to \d+ of age; use \d+ or \d+"),
        ("legs>=9", "no value of legs satisfies legs>=9"),
    ],
)
def test_conditions_that_cannot_be_are_refused_in_one_line(where: str, message: str, tree: Run) -> None:
    with pytest.raises(ValueError, match=message) as error:
        tree.sample(3, where=(where,))
    assert "\n" not in str(error.value)


def test_where_is_for_tables() -> None:
    run = fit("independent", np.eye(30, 3, dtype=int), progress=False)
    with pytest.raises(ValueError, match="`where` is for tables"):
        run.sample(2, where=("a=1",))


def test_rows_come_as_csv(tmp_path: Path, tree: Run) -> None:
    from unordinal.cli import run as command

    tree.save(tmp_path / "run")
    out = tmp_path / "new.csv"
    assert command(["sample", str(tmp_path / "run"), "--num", "50", "--where", "income=>50K", "--out", str(out)]) == 0
    frame = pd.read_csv(out)
    assert list(frame.columns) == ["age", "income", "legs"]
    assert set(frame["income"]) == {">50K"}
    assert frame["age"].between(17, 116).all()
