"""`unordinal bits FILE`."""

import html
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from unordinal.cli.common import BlockArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.texts import RESET, given_text
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag, Range

if TYPE_CHECKING:
    from unordinal.api import Run
    from unordinal.tasks.lines import Line


LEVELS = (22, 28, 142, 178, 166, 160)  # colours of a terminal, from expected to surprising
STEPS = (1.0, 2.0, 4.0, 6.0, 9.0)  # bits at which the colour changes


@dataclass(frozen=True)
class BitsArgs(BlockArgs):
    """Measure how surprising every line of a text is, in bits per character, the most surprising first.

    Plain bits prefer simple lines, whatever the model was trained on: a phrase that is repeated has few. --against
    subtracts the bits of a reference that was not trained on the model's text. --typical takes lines with far fewer
    bits than usual to be as unusual as those with far more.

    Examples:
        unordinal bits letters.txt
        unordinal bits letters.txt --against xz --top 10
        unordinal bits --text "the cat sat on the mat" --positions
        unordinal bits reads.txt --run runs/genes --typical --json
        unordinal bits people.csv --run runs/people --top 20
    """

    FIRST: ClassVar = ("run", "text", "top", "positions", "html", "against", "typical", "json")
    file: Annotated[Path | None, POSITIONAL] = None
    """A text file, in UTF-8, of which every line is scored; without it standard input is read."""
    text: str | None = None
    """A text to score in place of a file."""
    run: Annotated[str, Flag(metavar="RUN")] = "pretrained:text8-arm"
    """A run of text; an autoregressive one gives exact bits."""
    top: Annotated[int | None, Range(1)] = None
    """Print only the first N lines; default all."""
    positions: bool = False
    """Also print every character in a colour that shows how surprising it is (autoregressive models)."""
    html: Path | None = None
    """Write all lines as a heat map to this HTML file (autoregressive models)."""


def main(words: Words) -> int:
    from unordinal.data.guess import guess_format
    from unordinal.data.tables import is_table
    from unordinal.runs.data import data_for
    from unordinal.tasks.lines import Measure
    from unordinal.tasks.suspicion import MeasureRows

    args, values, of_rows = parse(words, BitsArgs, Measure, MeasureRows, skip=("text", "data"))
    check_output(args.html)
    if args.top is not None and args.top < 1:
        raise ValueError(f"--top must be at least 1, got {args.top}")
    is_frame = args.file is not None and is_table(args.file)
    text = "" if is_frame else given_text(args.text, args.file)
    if not is_frame and not text.strip():
        raise ValueError("the text is empty; there is nothing to score")
    run = args.load(args.run)
    is_packed = args.file is not None and (is_frame or guess_format(args.file) == "fasta")
    if is_packed and run.spec.ends:  # a column of texts, or records
        read = data_for(run, args.file, progress, is_whole=True).test
        text = "\n".join(run.spec.show(read[number]) for number in range(len(read)))
    elif is_frame:
        return table_bits(args, run, of_rows)
    asked = Measure(text, **values, progress=progress)
    if (args.positions or args.html) and run.model.stepper is None:
        raise ValueError(f"--positions and --html need an autoregressive model; {args.run} is not one")
    lines = sorted(run.measured(asked), key=lambda line: -line.score)
    if args.html:
        write_html(args.html, lines)
        say(f"Heat map written to {args.html}")
    shown = lines[: args.top]
    if args.json:
        rows = [as_values(line, with_positions=args.positions) for line in shown]
        print_json({"unit": run.spec.unit, "lines": rows, "run": args.run})
    else:
        has_score = asked.against is not None or asked.typical
        for line in shown:
            error = "" if line.bits.error is None else f" ± {line.bits.error / line.bits.num_symbols:.3f}"
            extra = f"{line.score:9.3f}" if has_score else ""
            found = heat(line) if args.positions else line.text
            print(f"{line.number:>6}{extra}{line.bits.per_symbol:9.3f}{error}  {found}")
        columns = "line, score, bits" if has_score else "line, bits"
        say(f"{counted(len(shown), 'line')}: {columns} per character, text; the most surprising first.")
    altered = sum(line.bits.num_altered for line in lines)
    if altered:
        say(f"Note: the model's alphabet lacks {counted(altered, 'character')}, read as plain letters or spaces.")
    return 0


def table_bits(args: BitsArgs, run: "Run", values: dict[str, Any]) -> int:
    """Rank the rows of a table, and name the likeliest error in each."""
    from unordinal.cli.writing import write_frame
    from unordinal.tasks.suspicion import MeasureRows, measure_rows

    wanted = {} if args.top is None else {"cells": args.top}
    asked = MeasureRows(str(args.file), **{**wanted, **values}, progress=progress)
    found, rows = measure_rows(run.model, run.spec, asked)
    shown = found if args.top is None else found.head(args.top)
    write_frame(shown, None, shows=not args.json)
    say("Bits of each row, the most surprising first, and the cell of it that is the likeliest error.")
    if rows.num_left_out:
        say(f"Note: {counted(rows.num_left_out, 'row')} left out; {rows.note}.")
    if args.json:
        records = shown.to_dict(orient="records")
        left_out = {"rows_left_out": rows.num_left_out}
        print_json({"unit": "bits per row", "rows": records, **left_out, "run": args.run})
    return 0


def as_values(line: "Line", *, with_positions: bool) -> dict[str, Any]:
    """Return a line as plain values for JSON."""
    values = line.to_dict()
    return values if with_positions else {name: value for name, value in values.items() if name != "positions"}


def level_of(bits: float) -> int:
    return sum(bits >= step for step in STEPS)


def heat(line: "Line") -> str:
    """Return a line as the model sees it, every character in the colour of its bits on a terminal."""
    if not sys.stdout.isatty() or line.bits.positions is None:
        return line.symbols
    parts = [
        f"\x1b[48;5;{LEVELS[level_of(bits)]}m{symbol}"
        for symbol, bits in zip(line.symbols, line.bits.positions, strict=True)
    ]
    return "".join(parts) + RESET


SHADES = ("#e8f5e9", "#c8e6c9", "#fff9c4", "#ffe082", "#ffab91", "#ef9a9a")


def write_html(path: Path, lines: "list[Line]") -> None:
    """Write a page that shows every line as a heat map."""
    from unordinal.data.storage import replacing

    page = (files("unordinal") / "templates" / "bits.html").read_text()
    scale = "".join(f'<span style="background:{shade}">&nbsp;&nbsp;</span>' for shade in SHADES)
    rows = []
    for line in lines:
        assert line.bits.positions is not None
        marks = "".join(
            f'<span style="background:{SHADES[level_of(bits)]}" title="{bits:.2f} bits">{html.escape(symbol)}</span>'
            for symbol, bits in zip(line.symbols, line.bits.positions, strict=True)
        )
        rows.append(f"<p><b>{line.bits.per_symbol:.3f}</b>{marks}</p>")
    with replacing(path) as file:
        file.write(page.replace("SCALE", scale).replace("ROWS", "\n".join(rows)).encode())
