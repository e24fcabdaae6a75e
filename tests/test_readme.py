"""What the README shows works as shown (with smaller budgets)."""

from pathlib import Path

import pytest
from conftest import Cli
from documents import ROOT, blocks, run_commands, run_python

README = ROOT / "README.md"


def test_commands_run(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_commands(README, cli, tmp_path, monkeypatch)


def test_python_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_python(README, tmp_path, monkeypatch)


def test_readme_names_the_two_commands() -> None:
    text = README.read_text()
    assert "make demo" in text
    assert "make test" in text
    assert len(blocks(README, "python")[0].strip().splitlines()) <= 10
