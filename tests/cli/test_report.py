"""`unordinal report`: what it prints, the page it writes, and what it refuses."""

import json
from pathlib import Path

import pytest

from unordinal.cli import run as command
from unordinal.data.cafe import cafe_orders


def test_the_command_prints_figures_and_writes_a_page_without_outside_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seed in (("real", 0), ("new", 1)):
        cafe_orders(800, seed).to_csv(tmp_path / f"{name}.csv", index=False)
    out = tmp_path / "report.html"
    words = ["report", str(tmp_path / "real.csv"), str(tmp_path / "new.csv"), "--out", str(out), "--json"]
    assert command(words) == 0
    printed = capsys.readouterr().out
    found = json.loads(printed.strip().splitlines()[-1])
    assert set(found["figures"]) >= {"columns", "pairs", "classifier", "association", "utility", "repeated"}
    page = out.read_text()
    assert "data:image/png" in page
    assert "http" not in page
    assert "privat" not in page.lower() + printed.lower()
    assert "cannot show" in page


def test_a_file_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(["report", str(tmp_path / "none.csv"), "x.csv"]) == 2
    assert "there is no file" in capsys.readouterr().err
