"""`unordinal demo`, end to end."""

from pathlib import Path

import pytest
from conftest import Cli

from unordinal.cli.train import free_name


def test_demo_end_to_end(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unordinal.cli.demo.show_bundled", lambda args, seed: None)  # see test_showcase.py
    result = cli("demo", "--minutes", "0.05", "--json")
    assert result.code == 0, result.err
    values = result.json
    assert set(values["baselines"]) >= {"order-0 counts", "order-3 counts", "xz -9e"}
    assert {name: part["kind"] for name, part in values["models"].items()} == {"arm": "exact", "multinomial": "elbo"}
    assert all(len(part["samples"]) == 3 for part in values["models"].values())
    assert Path("runs/demo/arm/plots/loss.png").exists()
    page = Path("runs/demo/report.html").read_text()
    assert page.count("data:image/png;base64,") == 3  # two losses and a chain
    assert "http" not in page.replace("<!doctype html>", "")
    assert free_name(Path("runs/demo")) == Path("runs/demo-2")


def test_the_demo_of_a_table_goes_from_csv_to_synthetic_csv(cli: Cli) -> None:
    result = cli("demo", "table", "--minutes", "0.03", "--json")
    assert result.code == 0, result.err
    folder = Path(result.json["folder"])
    assert len((folder / "new.csv").read_text().splitlines()) == 6001
    assert "data:image/png" in (folder / "report.html").read_text()
    assert "$ unordinal train arm" in result.err
