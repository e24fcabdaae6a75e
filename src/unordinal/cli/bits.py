"""`unordinal bits FILE`."""

import html
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from unordinal.cli.common import MachineArgs, check_output, check_seed, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.cli.texts import RESET, given_text
from unordinal.console import print_json, progress, say
from unordinal.names import counted

if TYPE_CHECKING:
    from unordinal.api import Run
    from unordinal.tasks.lines import Line
    from unordinal.tasks.surprise import Bits

COMMAND = Command(
    "unordinal bits",
    "Tell how surprising every line of a text is, in bits per character, the most surprising first.\n\n"
    "Plain bits prefer simple lines, whatever the model was trained on: a phrase that is repeated has few. --against "
    "subtracts the bits of a reference that knows nothing of the model's text. --typical takes lines with far fewer "
    "bits than usual to be as unusual as those with far more.",
    (
        "unordinal bits letters.txt",
        "unordinal bits letters.txt --against xz --top 10",
        'unordinal bits --text "the cat sat on the mat" --positions',
        "unordinal bits reads.txt --run runs/genes --typical --json",
    ),
    first=("run", "text", "top", "positions", "html", "against", "typical", "json"),
)

LEVELS = (22, 28, 142, 178, 166, 160)  # colours of a terminal, from expected to surprising
STEPS = (1.0, 2.0, 4.0, 6.0, 9.0)  # bits at which the colour changes


@dataclass(frozen=True)
class BitsArgs:
    file: tyro.conf.Positional[Path | None] = None
    """A text file, in UTF-8, of which every line is scored; without it standard input is read."""
    text: str | None = None
    """A text to score in place of a file."""
    run: Path = Path("pretrained:text8-arm")
    """A run of text; an autoregressive one gives exact bits."""
    top: int | None = None
    """Print only so many lines; default all."""
    positions: bool = False
    """Also print every character in a colour that says how surprising it is (autoregressive models)."""
    html: Path | None = None
    """Write all lines as a heat map to this HTML file (autoregressive models)."""
    against: str | None = None
    """Subtract the bits of a reference: another run over the same alphabet, `counts` of pairs of characters in the
    scored lines, or `xz`."""
    typical: bool = False
    """Rank by the distance from the bits that the model expects, which are those of its own samples."""
    seed: int = 0
    """Seed of the draws."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """Print one JSON object with every line."""


@dataclass(frozen=True)
class Ranked:
    """A line and how unusual it is."""

    line: "Line"
    score: float  # what lines are ranked by, in bits per character


def main(argv: list[str]) -> int:
    args = parse(BitsArgs, argv, COMMAND)
    from unordinal.api import load

    check_seed(args.seed)
    check_output(args.html)
    if args.top is not None and args.top < 1:
        raise ValueError(f"--top must be at least 1, got {args.top}")
    if args.against is not None and args.typical:
        raise ValueError("give --against or --typical, not both: each ranks lines in its own way")
    whole = given_text(args.text, args.file)
    run = load(args.run, device=chosen_device(args.machine))
    if (args.positions or args.html or args.typical) and not run.model.abilities.sequential:
        raise ValueError(f"--positions, --html and --typical need an autoregressive model; {args.run} is none")
    rows = ranked(run, whole, args)
    if args.html:
        write_html(args.html, [row.line for row in rows])
        say(f"Heat map written to {args.html}")
    shown = rows[: args.top]
    if args.json:
        print_json({"unit": run.spec.unit, "lines": [as_values(row, args) for row in shown], "run": str(args.run)})
    else:
        for row in shown:
            line = row.line
            error = "" if line.bits.error is None else f" ± {line.bits.error / line.bits.num_symbols:.3f}"
            extra = f"{row.score:9.3f}" if args.against or args.typical else ""
            text = heat(line) if args.positions else line.text
            print(f"{line.number:>6}{extra}{line.bits.per_symbol:9.3f}{error}  {text}")
        columns = "line, score, bits" if args.against or args.typical else "line, bits"
        say(f"{counted(len(shown), 'line')}: {columns} per character, text; the most surprising first.")
    return 0


def ranked(run: "Run", whole: str, args: BitsArgs) -> list[Ranked]:
    """Score the lines of a text and put the most surprising first."""
    from unordinal.tasks.lines import score_lines
    from unordinal.tasks.reading import read

    vocabulary = run.text_vocabulary("bits")
    lines = score_lines(run.model, whole, vocabulary, seed=args.seed, progress=progress)
    examples = [read(line.text, vocabulary).x for line in lines] if args.against or args.typical else []
    scores = unusual(run, examples, [line.bits for line in lines], args)
    rows = [Ranked(line, score) for line, score in zip(lines, scores, strict=True)]
    return sorted(rows, key=lambda row: -row.score)


def unusual(run: "Run", examples: list[Any], bits: "list[Bits]", args: BitsArgs) -> list[float]:
    """Return what examples are ranked by, in bits per symbol."""
    from unordinal.tasks.surprise import order_1_bits, typical_bits, xz_bits

    if args.typical:
        expected = typical_bits(run.model, args.seed)
        later = float(expected[len(expected) // 2 :].mean())  # positions beyond those of a sample
        usual = [float(expected[:n].sum()) + later * max(0, n - len(expected)) for n in map(len, examples)]
        return [abs(b.bits - u) / b.num_symbols for b, u in zip(bits, usual, strict=True)]
    if args.against is None:
        return [b.per_symbol for b in bits]
    if args.against == "xz":
        other = [xz_bits(x) for x in examples]
    elif args.against == "counts":
        other = order_1_bits(examples, run.spec.num_classes)
    else:
        from unordinal.api import load

        reference = load(args.against, device=chosen_device(args.machine))
        if reference.vocabulary != run.vocabulary:
            raise ValueError(f"{args.against} has another alphabet than {args.run}; a reference must have the same")
        other = [b.bits for b in reference.bits(examples, seed=args.seed, progress=progress)]
    return [(b.bits - o) / b.num_symbols for b, o in zip(bits, other, strict=True)]


def as_values(row: Ranked, args: BitsArgs) -> dict[str, Any]:
    """A line as plain values for JSON."""
    values = {**row.line.to_dict(), "score": row.score}
    return {**values, "positions": row.line.bits.positions} if args.positions else values


def level_of(bits: float) -> int:
    return sum(bits >= step for step in STEPS)


def heat(line: "Line") -> str:
    """What the model saw of a line, every character in the colour of its bits; on a terminal only."""
    if not sys.stdout.isatty() or line.bits.positions is None:
        return line.symbols
    parts = [
        f"\x1b[48;5;{LEVELS[level_of(bits)]}m{symbol}"
        for symbol, bits in zip(line.symbols, line.bits.positions, strict=True)
    ]
    return "".join(parts) + RESET


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Bits per character</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body {{ font: 16px/1.6 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }}
p {{ font-family: ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; }}
b {{ display: inline-block; min-width: 5rem; font-weight: 600; }}
span {{ color: #000; }}
</style></head><body><h1>Bits per character</h1>
<p>From expected {scale} to surprising. Each line begins with its bits per character.
Hover over a character for its bits.</p>
{rows}
</body></html>
"""
SHADES = ("#e8f5e9", "#c8e6c9", "#fff9c4", "#ffe082", "#ffab91", "#ef9a9a")


def write_html(path: Path, lines: "list[Line]") -> None:
    """Write a page that shows every line as a heat map."""
    from unordinal.data.storage import replacing

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
        file.write(PAGE.format(scale=scale, rows="\n".join(rows)).encode())
