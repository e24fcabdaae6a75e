"""The registry of the paper's experiments, against the source of the paper where UNORDINAL_PAPER names it."""

import os
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from unordinal.experiments import DATA, EXPERIMENTS, TABLES, Figure, Row, Sentence
from unordinal.recipes import RECIPES, SIZES, configured

ROWS = [(name, row) for name, table in TABLES.items() for row in table.rows]
NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Tabular:
    """The cells of a table in TeX, without markup; a cell that spans several rows or columns is in each of them."""

    head: list[str]
    rows: list[list[str]]

    def value(self, row: tuple[str, ...], column: str) -> list[float]:
        """Return the numbers in the cell of a row, found by the texts of its cells, and a column."""
        found = [cells for cells in self.rows if all(any(text == cell for cell in cells) for text in row)]
        assert len(found) == 1, f"{len(found)} rows of {row} in {self.rows}"
        place = self.head.index(column)
        return [float(number) for number in NUMBER.findall(found[0][place])]


def plain(cell: str) -> str:
    """Return a cell without markup."""
    cell = re.sub(r"\\cite\w*\{[^}]*\}", "", cell)
    cell = re.sub(r"\$\^(\\\w+|\{[^}]*\})\$|\\hspace\{[^}]*\}", "", cell)
    cell = cell.replace(r"\pm", "±").replace("$", "")
    cell = re.sub(r"\\text\w+\{([^}]*)\}", r"\1", cell)
    cell = re.sub(r"\\(footnotesize|small|scriptsize)\b", "", cell)
    return re.sub(r"\s+", " ", cell.replace("{", "").replace("}", "")).strip()


def spread(row: str) -> list[tuple[str, int, int]]:
    """Return the cells of a row, each with the number of rows and of columns that it spans."""
    found = []
    for cell in re.split(r"(?<!\\)&", row):
        rows = re.search(r"\\multirow\{(\d+)\}\{\*\}\{(.*)\}", cell, re.DOTALL)
        columns = re.search(r"\\multicolumn\{(\d+)\}\{\w+\}\{(.*)\}", cell, re.DOTALL)
        spans = (int(rows[1]) if rows else 1, int(columns[1]) if columns else 1)
        inner = rows[2] if rows else columns[2] if columns else cell
        found.append((plain(inner), *spans))
    return found


def tabular(source: str, label: str) -> Tabular:
    """Return the table with a label."""
    place = source.index(rf"\label{{{label}}}")
    begin = source.index(r"\begin{tabular}", place)
    body = source[begin : source.index(r"\end{tabular}", begin)]
    body = re.sub(r"\\begin\{tabular\}\{[^\n]*\}\s*\n|\\(top|mid|bottom)rule", "", body)
    rows: list[list[str]] = []
    waiting: dict[int, tuple[str, int]] = {}  # cells of earlier rows that reach into this one, by their column
    for line in re.split(r"\\\\", body):
        if not line.strip():
            continue
        cells: list[str] = []
        for text, down, across in spread(line):
            column = len(cells)
            kept, left = waiting.pop(column, ("", 0))
            shown, reach = (kept, left) if left and not text else (text, down)
            if reach > 1:
                waiting[column] = (shown, reach - 1)
            cells += [shown] * across
        rows.append(cells)
    return Tabular(rows[0], rows[1:])


@pytest.fixture(scope="module")
def paper() -> str:
    """The source of the paper without what is commented out."""
    path = os.environ.get("UNORDINAL_PAPER")
    if not path:
        pytest.skip("UNORDINAL_PAPER does not name the source of the paper")
    return re.sub(r"(?<!\\)%.*", "", Path(path).read_text())


def figures_of(row: Row) -> list[Figure | Sentence]:
    return [*row.figures, *row.iwbo]


def test_every_figure_stands_in_its_row_and_column(paper: str) -> None:
    checked = 0
    for name, row in ROWS:
        for figure in figures_of(row):
            if isinstance(figure, Sentence):
                words = re.sub(r"\s+", " ", paper)
                assert figure.words in words, (name, row.title)
                assert f"{figure.value:g}" in figure.words or f"{figure.value:.1f}" in figure.words
            else:
                said = tabular(paper, figure.table).value(figure.row, figure.column)
                assert said[0] == figure.value, (name, row.title, said)
                if figure.error is not None:
                    assert figure.error in said or figure.error in deviation(paper, figure), (name, row.title, said)
            checked += 1
    assert checked > 50


def deviation(paper: str, figure: Figure) -> list[float]:
    """Return the numbers in the column of deviations of a figure's row."""
    return tabular(paper, figure.table).value(figure.row, "stdev")


def test_no_row_of_the_papers_tables_of_results_is_missing(paper: str) -> None:
    for label in {f.table for _, row in ROWS for f in figures_of(row) if isinstance(f, Figure)}:
        known = {f.row for _, row in ROWS for f in figures_of(row) if isinstance(f, Figure) and f.table == label}
        for cells in tabular(paper, label).rows:
            assert any(set(row) <= set(cells) for row in known), (label, cells)


def test_a_wrong_figure_is_found(paper: str) -> None:
    table = tabular(paper, "tab:stdev")
    assert table.value(("Argmax Flow (ours)", "Coupling", "text8"), "stdev") == [0.017]
    assert table.value(("Argmax Flow (ours)", "AR", "enwik8"), "average") == [1.42]
    with pytest.raises(AssertionError, match="2 rows"):
        table.value(("Argmax Flow (ours)", "Coupling"), "stdev")


def test_every_row_can_be_configured_at_every_size() -> None:
    for _, row in ROWS:
        assert row.model in RECIPES
        assert row.data in DATA
        if not row.since:
            assert row.experiment in EXPERIMENTS
            assert [configured(row.experiment, size).size for size in SIZES] == list(SIZES)


def test_rows_of_a_table_differ() -> None:
    for table in TABLES.values():
        keys = [(row.title, row.data) for row in table.rows]
        assert len(set(keys)) == len(keys)
    assert all(first != second for first, second in pairwise(TABLES))
