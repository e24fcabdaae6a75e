"""What the guides show works as shown (with smaller budgets)."""

import re
from pathlib import Path

import pytest
from conftest import Cli
from documents import ROOT, blocks, run_commands, run_python


@pytest.mark.parametrize(
    "name", ["tables.md", "lines.md", "blocks.md", pytest.param("quickstart.md", marks=pytest.mark.slow)]
)
def test_commands_run(name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_commands(ROOT / "docs" / name, cli, tmp_path, monkeypatch)


TASKS = ("examples.md", "lines.md", "tables.md", "correcting.md", "filling.md", "surprise.md")


@pytest.mark.parametrize("name", ["extending.md", "blocks.md", *TASKS])
def test_python_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_python(ROOT / "docs" / name, tmp_path, monkeypatch)


def test_the_audits_print_what_the_guide_shows(capsys: pytest.CaptureFixture[str]) -> None:
    guide = ROOT / "docs" / "figures.md"
    for code in blocks(guide, "python"):
        exec(code, {})
    assert capsys.readouterr().out == "".join(blocks(guide, "text"))


def test_links_and_pictures_exist() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{path.name} points to {target}"
