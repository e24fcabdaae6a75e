"""The pages of results are those that their JSON files make, and every figure has its command."""

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from documents import ROOT

FOLDER = ROOT / "docs" / "results"
ARTICLES = [path for path in sorted(FOLDER.glob("*.json")) if '"unordinal": "article"' in path.read_text()]


@pytest.fixture(scope="module")
def build() -> Any:
    """The script that writes the pages."""
    spec = importlib.util.spec_from_file_location("build_results", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pages_are_those_that_the_files_make(build: Any) -> None:
    texts, pictures = build.pages()
    assert {path.name for path in FOLDER.glob("*.md")} == set(texts)
    for name, text in texts.items():
        assert (FOLDER / name).read_text() == text, f"run python docs/results/build.py: {name} is not up to date"
    for text in texts.values():
        for name in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
            assert (FOLDER / name).is_file(), name
    assert all((FOLDER / name).is_file() for name in pictures)


@pytest.mark.parametrize("path", ARTICLES, ids=lambda path: path.stem)
def test_every_article_says_when_where_and_how_it_was_made(path: Path) -> None:
    values = json.loads(path.read_text())
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", values["date"])
    assert "cores" in values["machine"]
    assert values["summary"].endswith(".")
    commands = [line for part in values["parts"] for line in part.get("code", ())]
    assert commands
    for command in commands:
        for script in re.findall(r"benchmarks/\w+\.py", command):
            assert (ROOT / script).is_file(), script


def test_there_are_articles() -> None:
    assert len(ARTICLES) > 8
