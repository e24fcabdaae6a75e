"""The tutorials run, and their pages and notebooks are those of the scripts."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from documents import ROOT, blocks

cells_of = runpy.run_path(str(ROOT / "docs" / "tutorials" / "build.py"))["cells_of"]

TUTORIALS = [path for path in sorted((ROOT / "docs" / "tutorials").glob("*.py")) if path.name != "build.py"]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_page_and_notebook_have_the_cells_of_the_script(path: Path) -> None:
    cells = cells_of(path.read_text())
    code = [cell.source for cell in cells if not cell.is_text]
    assert [block.rstrip("\n") for block in blocks(path.with_suffix(".md"), "python")] == code
    assert str(ROOT) not in path.with_suffix(".md").read_text()
    assert "/tmp/" not in path.with_suffix(".md").read_text()
    shown = json.loads(path.with_suffix(".ipynb").read_text())["cells"]
    assert ["".join(cell["source"]) for cell in shown] == [cell.source for cell in cells]
    assert all(
        cell["cell_type"] == ("markdown" if one.is_text else "code") for cell, one in zip(shown, cells, strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_the_script_runs(path: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "MPLBACKEND": "agg"}
    subprocess.run([sys.executable, str(path)], cwd=tmp_path, env=environment, check=True, timeout=600)
