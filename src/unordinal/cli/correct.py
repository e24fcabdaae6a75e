"""`unordinal correct TEXT`."""

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from unordinal.cli.common import MachineArgs
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.texts import FAINT, RESET, STRONG, given_text, print_text
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag

if TYPE_CHECKING:
    from unordinal.tasks.correcting import Correction


DEFAULTS = {"pass": "pretrained:text8-uniform", "beam": "pretrained:text8-arm"}


@dataclass(frozen=True)
class CorrectArgs(MachineArgs):
    """Correct what was mistyped in a text: missing, added, replaced and swapped letters.

    The text is an argument, a file, or standard input. On a terminal the changes are shown in colour; otherwise the
    corrected text goes to standard output, byte for byte the same where nothing is suggested.

    Examples:
        unordinal correct "the goverment was begining to recieve letters"
        unordinal correct --file letter.txt --threshold 0.9 --careful --keep names.txt
        cat letter.txt | unordinal correct --method pass > corrected.txt
    """

    FIRST: ClassVar = (
        "file",
        "run",
        "error_rate",
        "threshold",
        "method",
        "careful",
        "keep",
        "judge",
        "beam",
        "passes",
        "json",
    )
    text: Annotated[str | None, POSITIONAL] = None
    """The text; without it --file or standard input is read."""
    file: Path | None = None
    """A text file, in UTF-8."""
    run: Annotated[str | None, Flag(metavar="RUN")] = None
    """A run of an autoregressive model, or of a diffusion with uniform noise; default a bundled model."""
    keep: Path | None = None
    """A text file of words that stay as they are, such as names."""


def main(words: Words) -> int:
    from unordinal.tasks.correcting import Correct

    args, values = parse(words, CorrectArgs, Correct, skip=("text", "keep"))
    text = given_text(args.text, args.file)
    if not text.strip():
        raise ValueError("the text is empty; there is nothing to correct")
    keep = () if args.keep is None else tuple(given_text(None, args.keep).split())
    asked = Correct(text, **values, keep=keep, progress=progress)
    run = args.load(args.run or DEFAULTS[asked.method or "beam"])
    found = run.corrected(asked)
    if args.json:
        print_json({"text": found.text, "suggestions": [asdict(s) for s in found.suggestions]})
    elif sys.stdout.isatty():
        print(coloured(text, found))
        for s in found.suggestions[:20]:
            say(f"  at {s.start}: {s.old!r} to {s.new!r}, confidence {s.confidence:.2f}")
    else:
        print_text(found.text if args.text is None else f"{found.text}\n")
    say(f"{counted(len(found.suggestions), 'suggestion')}.")
    return 0


def coloured(text: str, found: "Correction") -> str:
    """Return the text with what is replaced struck out, and their replacements in green."""
    parts, done = [], 0
    for s in found.suggestions:
        parts += [text[done : s.start], f"{FAINT}{s.old}{RESET}{STRONG}{s.new}{RESET}"]
        done = s.start + len(s.old)
    return "".join([*parts, text[done:]])
