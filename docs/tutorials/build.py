"""Run the tutorials, and write each as a page and as a notebook: `python docs/tutorials/build.py [NAME...]`.

A tutorial is a Python script whose cells begin with `# %%`, or with `# %% [markdown]` for text in comments.
"""

import contextlib
import io
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEXT = "# %% [markdown]"


@dataclass
class Cell:
    """A cell of a tutorial: text, or code with what it prints."""

    is_text: bool
    source: str
    output: str = ""


def cells_of(script: str) -> list[Cell]:
    """Split a script into its cells.

    >>> [cell.source for cell in cells_of("# %% [markdown]\\n# # Title\\n#\\n# Text.\\n\\n# %%\\nprint(1)\\n")]
    ['# Title\\n\\nText.', 'print(1)']
    """
    found: list[Cell] = []
    for line in script.splitlines():
        if line.startswith("# %%"):
            found.append(Cell(line == TEXT, ""))
        elif found[-1].is_text:
            found[-1].source += line.removeprefix("#").removeprefix(" ") + "\n"
        else:
            found[-1].source += line + "\n"
    return [Cell(cell.is_text, cell.source.strip("\n")) for cell in found]


def run(cells: list[Cell], name: str) -> None:
    """Run the code, and note what each cell prints."""
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        if not cell.is_text:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(cell.source, name, "exec"), names)
            cell.output = printed.getvalue()


def page(cells: list[Cell], name: str) -> str:
    """Return a tutorial in Markdown."""
    parts = []
    for cell in cells:
        if cell.is_text:
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        if cell.output:
            parts.append(f"```text\n{cell.output.rstrip()}\n```")
    parts.append(f"*This page is a script, [{name}.py]({name}.py), and a notebook, [{name}.ipynb]({name}.ipynb).*")
    return "\n\n".join(parts) + "\n"


def notebook(cells: list[Cell]) -> dict[str, object]:
    """Return a tutorial as a notebook."""
    found: list[dict[str, object]] = []
    for number, cell in enumerate(cells):
        lines = cell.source.splitlines(keepends=True)
        if cell.is_text:
            found.append({"cell_type": "markdown", "id": f"cell-{number}", "metadata": {}, "source": lines})
            continue
        printed = [{"output_type": "stream", "name": "stdout", "text": cell.output.splitlines(keepends=True)}]
        found.append(
            {
                "cell_type": "code",
                "id": f"cell-{number}",
                "metadata": {},
                "execution_count": None,
                "source": lines,
                "outputs": printed if cell.output else [],
            }
        )
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return {"cells": found, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}


def build(script: Path) -> None:
    """Run a tutorial in a folder of its own; write its page, its notebook and its pictures."""
    cells, before = cells_of(script.read_text()), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            run(cells, script.name)
            for picture in Path().glob("*.png"):
                shutil.copy(picture, HERE)
        finally:
            os.chdir(before)
    (HERE / f"{script.stem}.md").write_text(page(cells, script.stem))
    (HERE / f"{script.stem}.ipynb").write_text(json.dumps(notebook(cells), indent=1) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    for script in sorted(HERE.glob("*.py")):
        if script.name != "build.py" and (not sys.argv[1:] or script.stem in sys.argv[1:]):
            print(script.stem, file=sys.stderr, flush=True)
            build(script)
