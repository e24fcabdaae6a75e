"""`unordinal compress FILE`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from unordinal.cli.common import MachineArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.data.storage import replacing
from unordinal.settings import Flag

DEFAULT = "pretrained:english-arm"
ENDING = ".un"


@dataclass(frozen=True)
class CompressArgs(MachineArgs):
    """Compress a file losslessly with the probabilities of a model, whose bits thereby become real.

    The file is what the model was trained on: text, lines, a CSV table (restored cell by cell), or an .npy file of
    classes. Only the same model restores it, on the same kind of machine with the same versions; elsewhere it is
    likely to work, and checksums tell if it does not. It is slow: the network runs for every symbol.

    Examples:
        unordinal compress letter.txt
        unordinal compress people.csv --run runs/people --out people.un
        unordinal decompress people.un --run runs/people --out people.csv
    """

    FIRST: ClassVar = ("run", "out", "calls", "json")
    file: Annotated[Path, POSITIONAL]
    """The file."""
    run: Annotated[str, Flag(metavar="RUN")] = DEFAULT
    """A run of arm, independent or chow-liu, or of absorbing for maps and arrays."""
    out: Path | None = None
    """The file to write; default the name of FILE with .un at the end."""


def main(words: Words) -> int:
    from unordinal.tasks.compressing import Compress

    args, values = parse(words, CompressArgs, Compress, skip=("data", "name"))
    out = args.out or args.file.with_name(args.file.name + ENDING)
    check_new(out)
    try:
        raw = args.file.expanduser().read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {args.file}: {error.strerror}") from error
    run = args.load(args.run)
    reference = args.run if ":" in args.run else ""
    found = run.compressed(Compress(raw, name=args.file.name, **values, progress=progress), reference)
    with replacing(out) as file:
        file.write(found.archive)
    size, whole = len(found.archive), max(1, len(raw))
    if args.json:
        facts = {name: value for name, value in vars(found).items() if name != "archive"}
        print_json({**facts, "archive_bytes": size, "out": str(out)})
    else:
        shares = f"{size / whole:.1%}, {8 * size / whole:.3f} bits per byte"
        print(f"{args.file} {found.size:,} bytes -> {out} {size:,} bytes ({shares})")
    say(f"The model gives {found.bits / 8:,.0f} bytes; {found.coded_bytes:,} were written.")
    if found.num_outside:
        outside = f"{found.num_outside:,} symbols, lines or cells"
        say(f"Note: {outside} that the model cannot write take {found.side_bytes:,} bytes.")
    if not found.is_identical:
        say("Note: the table is restored cell by cell; quotes or line ends may differ.")
    say("It was restored and compared before this line was printed.")
    return 0


def check_new(path: Path) -> None:
    """Raise a ValueError if a file cannot be written, or is there already."""
    check_output(path)
    if path.exists():
        raise ValueError(f"{path} exists already; choose another name with `out`")
