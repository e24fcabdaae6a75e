"""`unordinal predict`, and the other commands on tables: fill, bits and sample."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Cli, refused

from unordinal.api import fit


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    kind = rng.choice(["frog", "toad"], 300)
    colour = np.where(rng.random(300) < 0.9, np.where(kind == "frog", "green", "brown"), "red")
    frame = pd.DataFrame({"kind": kind, "colour": colour, "legs": rng.integers(2, 5, 300)})
    frame.to_csv(tmp_path / "all.csv", index=False)
    fit("chow-liu", tmp_path / "all.csv", out=tmp_path / "run", progress=False)
    return tmp_path


def test_a_column_is_predicted(cli: Cli, people: Path) -> None:
    result = cli("predict", people / "run", people / "all.csv", "--column", "colour", "--out", people / "p.csv")
    assert result.code == 0, result.err
    found = pd.read_csv(people / "p.csv")
    assert list(found.columns) == ["brown", "green", "red"]
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-6)
    printed = cli("predict", people / "run", people / "all.csv", "--column", "colour", "--json").json
    assert len(printed["probabilities"]) == 300
    refused(cli("predict", people / "run", people / "all.csv"), "which column? give --column NAME")
    refused(cli("predict", people / "run", people / "all.csv", "--column", "colr"), "did you mean colour?")


def test_missing_cells_are_filled(cli: Cli, people: Path) -> None:
    frame = pd.read_csv(people / "all.csv", dtype=str)
    frame.loc[:9, "colour"] = None
    frame.to_csv(people / "holes.csv", index=False)
    result = cli("fill", "--run", people / "run", "--file", people / "holes.csv", "--out", people / "filled.csv")
    assert result.code == 0, result.err
    assert "10 cells filled" in result.err
    filled = pd.read_csv(people / "filled.csv", dtype=str)
    assert filled["colour"].notna().all()
    assert filled.iloc[10:].equals(frame.iloc[10:])
    refused(cli("fill", "--run", people / "run", "--file", people / "all.csv"), "there is nothing to fill")


def test_rows_are_ranked(cli: Cli, people: Path) -> None:
    rows = pd.DataFrame({"kind": ["frog"] * 4 + ["toad"], "colour": ["green"] * 5, "legs": [3] * 5})
    rows.to_csv(people / "odd.csv", index=False)
    found = cli("bits", people / "odd.csv", "--run", people / "run", "--top", 2, "--json").json
    assert found["rows"][0]["row"] == 5
    assert found["rows"][0]["cell"] in ("kind", "colour")
    assert cli("sample", people / "run", "--num", 3).out.startswith("kind,colour,legs\n")
