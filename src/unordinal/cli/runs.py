"""`unordinal runs [FOLDER]`: what has been trained here."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, say


@dataclass(frozen=True)
class RunsArgs:
    """List runs, the newest first: model, data, size, best validation score, and when they were trained.

    Examples:
        unordinal runs
        unordinal runs experiments --json
    """

    folder: Annotated[Path, POSITIONAL] = Path("runs")
    """Folder to search for runs, at any depth."""
    json: bool = False
    """One JSON object on stdout."""


def main(words: Words) -> int:
    args = parse(words, RunsArgs)
    from unordinal.runs.folder import list_runs

    if not args.folder.is_dir():
        raise ValueError(f"no folder {args.folder}; expected one that holds runs of `unordinal train`")
    found = list_runs(args.folder)
    if args.json:
        print_json({"runs": [{**vars(entry), "path": str(entry.path)} for entry in found]})
        return 0
    if not found:
        say(f"No runs in {args.folder}.")
        return 0
    row = "{:<34} {:<30} {:<6} {:<24} {:>10}  {}"
    print(row.format("run", "model", "size", "data", "bits", "trained"))
    for entry in found:
        bits = "" if entry.bits is None else f"{entry.bits:.4f}"
        print(row.format(str(entry.path), entry.preset, entry.size, entry.data, bits, entry.when))
    return 0
