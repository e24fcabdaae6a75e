"""`unordinal decompress FILE`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from unordinal.cli.common import MachineArgs
from unordinal.cli.compress import check_new
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress, say
from unordinal.data.storage import replacing
from unordinal.settings import Flag


@dataclass(frozen=True)
class DecompressArgs(MachineArgs):
    """Restore a file that `unordinal compress` made, with the same model.

    Nothing is written unless all checksums are right.

    Examples:
        unordinal decompress letter.txt.un
        unordinal decompress people.un --run runs/people --out people.csv
    """

    FIRST: ClassVar = ("run", "out", "json")
    file: Annotated[Path, POSITIONAL]
    """The archive."""
    run: Annotated[str | None, Flag(metavar="RUN")] = None
    """The run that it was compressed with; default the bundled model that the archive names."""
    out: Path | None = None
    """The file to write; default the name that the file had, in the folder of the archive."""


def main(words: Words) -> int:
    from unordinal.tasks.archive import unpacked
    from unordinal.tasks.compressing import Decompress

    args, _ = parse(words, DecompressArgs, Decompress, skip=("archive", "name"))
    try:
        raw = args.file.expanduser().read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {args.file}: {error.strerror}") from error
    header, _ = unpacked(raw, str(args.file))
    name = Path(header.name).name  # an archive cannot choose a folder
    out = args.out or args.file.with_name(name or "restored")
    check_new(out)
    if args.run is None and not header.run.startswith("pretrained:"):
        raise ValueError(f"{args.file} was compressed with the run {header.run!r}; give its folder as `run`")
    run = args.load(args.run or header.run)
    restored = run.decompressed(Decompress(raw, name=str(args.file), progress=progress))
    with replacing(out) as file:
        file.write(restored)
    if args.json:
        print_json({"out": str(out), "bytes": len(restored)})
    else:
        print(f"{args.file} -> {out} {len(restored):,} bytes")
    say("All checksums are right.")
    return 0
