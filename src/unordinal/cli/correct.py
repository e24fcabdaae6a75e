"""`unordinal correct TEXT`."""

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from unordinal.cli.common import MachineArgs, chosen_device
from unordinal.cli.flags import Command, parse
from unordinal.cli.texts import FAINT, RESET, STRONG, given_text, print_text
from unordinal.console import print_json, progress, say
from unordinal.names import counted

if TYPE_CHECKING:
    from unordinal.tasks.correcting import Corrected

COMMAND = Command(
    "unordinal correct",
    "Correct mistyped letters of a text. Only substitutions are corrected: no letter is inserted or left out.\n\n"
    "The text is an argument, a file, or standard input. On a terminal the changes are shown in colour; otherwise the "
    "corrected text goes to standard output, byte for byte the same where nothing is suggested.",
    (
        'unordinal correct "the population of the united ststes" --method beam',
        "unordinal correct --file letter.txt --error-rate 0.01 --threshold 0.8",
        "cat letter.txt | unordinal correct --method beam > corrected.txt",
    ),
    first=("file", "run", "error_rate", "threshold", "method", "passes", "beam", "json"),
)

DEFAULTS = {"pass": "pretrained:text8-uniform", "beam": "pretrained:text8-arm"}


@dataclass(frozen=True)
class CorrectArgs:
    text: tyro.conf.Positional[str | None] = None
    """The text; without it --file or standard input is read."""
    file: Path | None = None
    """A text file, in UTF-8."""
    run: Path | None = None
    """A run of a diffusion with uniform noise, or of an autoregressive model; default a model that comes with the
    package."""
    error_rate: float = 0.02
    """The share of letters that are wrong."""
    threshold: float = 0.5
    """The least probability of a suggestion."""
    method: Literal["pass", "beam"] | None = None
    """pass reads the text once with a diffusion; beam searches with an autoregressive model, which is slower, and
    better where errors stand close together."""
    passes: int = 1
    """With pass: how often the text is read, each time with the suggestions so far in place."""
    beam: int = 16
    """With beam: how many candidates are kept."""
    machine: Annotated[MachineArgs, tyro.conf.arg(name="")] = field(default_factory=MachineArgs)
    json: bool = False
    """Print one JSON object with the text and every suggestion."""


def main(argv: list[str]) -> int:
    args = parse(CorrectArgs, argv, COMMAND)
    from unordinal.api import load

    text = given_text(args.text, args.file)
    if not text.strip():
        raise ValueError("the text is empty; there is nothing to correct")
    run = load(args.run or DEFAULTS[args.method or "pass"], device=chosen_device(args.machine))
    found = run.correct(
        text,
        error_rate=args.error_rate,
        threshold=args.threshold,
        passes=args.passes,
        method=args.method,
        beam=args.beam,
        progress=progress,
    )
    if args.json:
        print_json({"text": found.text, "suggestions": [asdict(s) for s in found.suggestions]})
    elif sys.stdout.isatty():
        print(coloured(text, found))
        for s in found.suggestions[:20]:
            say(f"  at {s.start}: {s.old!r} to {s.new!r}, probability {s.probability:.2f}")
    else:
        print_text(found.text if args.text is None else f"{found.text}\n")
    say(f"{counted(len(found.suggestions), 'suggestion')}.")
    return 0


def coloured(text: str, found: "Corrected") -> str:
    """Return the text with what was replaced struck out, and what replaces it in green."""
    parts, done = [], 0
    for s in found.suggestions:
        parts += [text[done : s.start], f"{FAINT}{s.old}{RESET}{STRONG}{s.new}{RESET}"]
        done = s.start + len(s.old)
    return "".join([*parts, text[done:]])
