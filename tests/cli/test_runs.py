"""`unordinal runs`: what has been trained here."""

import shutil
from pathlib import Path

from conftest import Cli, refused


def test_runs_are_listed_the_newest_first(cli: Cli, trained: Path, trained_flow: Path, tmp_path: Path) -> None:
    refused(cli("runs"), "no folder runs")
    (tmp_path / "runs").mkdir()
    assert "No runs in runs" in cli("runs").err
    shutil.copytree(trained, tmp_path / "runs" / "diffusion")
    shutil.copytree(trained_flow, tmp_path / "runs" / "deep" / "flow")
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "other" / "config.json").write_text("{}")  # none of ours
    listed = cli("runs", "--json").json["runs"]
    assert {run["preset"] for run in listed} == {"text8/multinomial", "text8/argmax-ar"}
    assert all(run["data"] == "text:book.txt" and run["size"] == "tiny" and run["bits"] > 0 for run in listed)
    shown = cli("runs", "runs").out
    assert "runs/diffusion" in shown
    assert "text8/argmax-ar" in shown
