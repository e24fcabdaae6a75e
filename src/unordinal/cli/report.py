"""`unordinal report REAL SYNTHETIC`."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from unordinal.cli.common import MachineArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.tasks.synthetic import Fidelity

LIMITS = (
    "What these numbers cannot show: whether a row reveals something about a person. Rows that differ from every "
    "training row may still do so, and rows that stand in the training data may be common ones. A small distance, or "
    "more repeated rows than among held-out rows, is a sign of memorised rows; their absence proves nothing."
)
BLIND = "* Independent columns are about as good as held-out rows: this figure does not see how columns depend."


@dataclass(frozen=True)
class ReportArgs(MachineArgs):
    """Compare a synthetic table with the real one, next to held-out rows, independent columns and copied rows.

    Examples:
        unordinal report people.csv new.csv
        unordinal report people.csv new.csv --target income --out report.html --json
    """

    FIRST: ClassVar = ("out", "target", "held_out", "rows", "seed", "json")
    real_table: Annotated[Path, POSITIONAL, Flag(metavar="REAL")]
    """The real rows, a .csv, .tsv or .parquet file."""
    synthetic_table: Annotated[Path, POSITIONAL, Flag(metavar="SYNTHETIC")]
    """The synthetic rows, a file with the same columns."""
    out: Path = Path("report.html")
    """The page to write."""


def main(words: Words) -> int:
    from unordinal.tasks.synthetic import CompareTables, compare_tables

    args, values = parse(words, ReportArgs, CompareTables, skip=("real", "synthetic"))
    check_output(args.out)
    found = compare_tables(CompareTables(str(args.real_table), str(args.synthetic_table), **values, progress=progress))
    for row in rows_of(found):
        print("".join(f"{cell:<14}" if place else f"{cell:<13}" for place, cell in enumerate(row)).rstrip())
    say(BLIND)
    write_page(args.out, found, f"{args.synthetic_table.name} compared with {args.real_table.name}")
    say(f"{found.num_rows['compared']:,} rows of each table compared; the page is {args.out}")
    if args.json:
        print_json({**found.to_dict(), "report": str(args.out)})
    return 0


def rows_of(found: "Fidelity") -> list[tuple[str, ...]]:
    """Return the figures as rows of a table, with a row of headings."""
    from unordinal.tasks.synthetic import TABLES

    rows: list[tuple[str, ...]] = [("figure", *TABLES, "good")]
    for figure in found.figures:
        values = (f"{figure.values[name]:.4f}" for name in TABLES)
        rows.append((figure.name + "*" * figure.is_blind, *values, figure.ideal))
    return rows


def write_page(path: Path, found: "Fidelity", title: str) -> None:
    """Write the comparison as a self-contained HTML page."""
    from unordinal.data.storage import replacing
    from unordinal.evaluate.report import Report

    page = Report(title)
    page.paragraph(
        f"{found.num_rows['compared']:,} rows of each table. Held-out rows are real rows that the model did not see: "
        "as good as can be. Independent columns have the right values and no dependence. Copied rows are training rows."
    )
    head, *rows = rows_of(found)
    page.table(head, rows)
    page.paragraph(BLIND)
    page.picture(plotted(found), "total variation of each column, and how pairs of columns depend on each other")
    page.heading("What the figures mean")
    page.table(("figure", "meaning"), [(figure.name, figure.text) for figure in found.figures])
    page.paragraph(LIMITS)
    with replacing(path) as file:
        file.write(page.render())


def plotted(found: "Fidelity") -> bytes:
    """Return a picture of single columns and of pairs of columns as PNG."""
    from matplotlib.figure import Figure

    names = list(found.columns)
    figure = Figure(figsize=(11, max(3.2, 0.26 * len(names) + 1.2)), layout="constrained")
    bars, *maps = figure.subplots(1, 3, width_ratios=(1.2, 1, 1))
    bars.barh(names, list(found.columns.values()), color="#1b7837")
    bars.invert_yaxis()
    bars.set_title("total variation of columns", fontsize=10)
    most = max(float(part.max()) for part in found.association) or 1.0
    for axes, values, title in zip(maps, found.association, ("real", "synthetic"), strict=True):
        picture = axes.imshow(values, vmin=0, vmax=most, cmap="viridis")
        axes.set_title(f"mutual information, {title}", fontsize=10)
        axes.set_xticks(range(len(names)), names, rotation=90, fontsize=7)
        axes.set_yticks([])  # the bars beside it have the same order
    figure.colorbar(picture, ax=maps, shrink=0.7, label="nats")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return buffer.getvalue()
