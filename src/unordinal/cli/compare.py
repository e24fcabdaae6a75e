"""`unordinal compare RUN RUN`."""

from dataclasses import dataclass
from typing import Annotated

from unordinal.cli.common import MachineArgs
from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.console import print_json, progress
from unordinal.names import counted
from unordinal.settings import Flag


@dataclass(frozen=True)
class CompareArgs(MachineArgs):
    """Compare two runs on the same examples: the difference of their bits, with the standard error of the difference.

    Examples:
        unordinal compare runs/arm runs/multinomial
        unordinal compare runs/small runs/large --data other.txt --repeats 16 --json
    """

    first: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """A run; its data are scored."""
    second: Annotated[str, POSITIONAL, Flag(metavar="RUN")]
    """Another run, of data with the same classes."""


def main(words: Words) -> int:
    from unordinal.evaluate.compare import Compare

    args, values = parse(words, CompareArgs, Compare)
    from unordinal.api import compare

    asked = Compare(**values)
    first, second = (args.load(path) for path in (args.first, args.second))
    result = compare(first, second, **values, progress=progress)
    for path, bits, kind in zip((args.first, args.second), (result.first, result.second), result.kinds, strict=True):
        print(f"{path}: {bits:.4f} {result.unit} ({kind})")
    error = "" if result.standard_error is None else f" ± {result.standard_error:.4f}"
    print(
        f"second - first: {result.difference:+.4f}{error} over {counted(result.num_examples, 'example')} of "
        f"{result.split}; {result.verdict}"
    )
    if args.json:
        print_json({**vars(result), "runs": [args.first, args.second], "seed": asked.seed})
    return 0
