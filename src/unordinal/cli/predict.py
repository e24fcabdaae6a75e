"""`unordinal predict RUN TABLE --column NAME`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from unordinal.cli.common import MachineArgs, check_output
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.cli.writing import write_frame
from unordinal.console import print_json, progress, say
from unordinal.names import counted
from unordinal.settings import Flag


@dataclass(frozen=True)
class PredictArgs(MachineArgs):
    """Predict a column of a table from the others: the probability of each of its values, row by row.

    Examples:
        unordinal predict runs/people people.csv --column income
        unordinal predict runs/people people.csv --column income --out income.csv
    """

    run: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """A run of a table: arm (in any order), absorbing or chow-liu."""
    table: Annotated[Path, POSITIONAL, Flag(metavar="TABLE")]
    """The rows, a .csv, .tsv or .parquet file; cells may be missing."""
    out: Path | None = None
    """Write the probabilities to this .csv, .tsv or .parquet file instead of printing them."""


def main(words: Words) -> int:
    from unordinal.tasks.cells import Predict, predict

    args, values = parse(words, PredictArgs, Predict, skip=("data",))
    if "column" not in values:
        raise ValueError("which column? give --column NAME")
    check_output(args.out)
    run = args.load(args.run)
    found, spread = predict(run.model, run.spec, Predict(str(args.table), **values, progress=progress))
    write_frame(found, args.out, shows=not args.json)
    say(f"{counted(len(found), 'row')}: the probabilities of {values['column']} given the other columns.")
    if spread is not None:
        say(f"They are a mean over orders, from which those of a single order differ by {spread:.4f} on average.")
    if args.json:
        print_json({"column": values["column"], "probabilities": found.to_dict(orient="records"), "spread": spread})
    return 0
