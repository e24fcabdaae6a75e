"""The options of a benchmark, from its dataclass, read as those of a command are."""

import sys
from typing import Any, TypeVar

from unordinal.cli.parsing import Command, options_of, read
from unordinal.cli.words import split

Kind = TypeVar("Kind")


def given(kind: type[Kind], doc: str | None) -> Kind:
    """Return the options that were given; --help prints them, with the benchmark's docstring."""
    command = Command(f"python {sys.argv[0]}", doc or "", (f"python {sys.argv[0]}",))
    values: Any = read(split(sys.argv[1:]), command, list(options_of(kind)))
    return kind(**values)
