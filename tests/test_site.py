"""The documentation as a site: it names everything public, and asks no other server for anything."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT

import unordinal

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def test_the_reference_has_every_public_name() -> None:
    text = "".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    for name in vars(unordinal)["__all__"]:
        assert re.search(rf"::: unordinal\S*\.{name}\n|`unordinal\.{name}`", text), name


def test_every_page_is_in_the_navigation_and_in_llms_txt() -> None:
    navigation, index = (ROOT / "mkdocs.yml").read_text(), (DOCS / "llms.txt").read_text()
    assert len(PAGES) > 20
    for path in PAGES:
        name = path.relative_to(DOCS).as_posix()
        assert re.search(rf"[ :]{re.escape(name)}\n", navigation), name
        assert name == "index.md" or f"]({name})" in index, name


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(tmp_path / "site")]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(PAGES)
    for page in pages:
        for tag in re.findall(r"<(?:script|link|img|iframe|source|video)\b[^>]*>", page.read_text()):
            assert not re.search(r"""(src|href)=["']?(https?:)?//""", tag), (page.name, tag)
    for style in (tmp_path / "site").rglob("*.css"):
        assert not re.search(r"""(url\(|@import )["']?(https?:)?//""", style.read_text()), style.name
