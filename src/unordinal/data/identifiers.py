"""Names of Python's standard library, which need no download: lines, with a label that says what each name is."""

import ast
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from unordinal.data.docs import nodes_of, source_files
from unordinal.data.lines import LineSettings
from unordinal.progress import Progress

FEWEST = 1000  # fewer names mean that Python was installed without its sources
EXCEPTIONS = ("Error", "Exception", "Warning")


@dataclass(frozen=True)
class NamesSource(LineSettings):
    """The public names that the modules of the running Python define, each with its kind as a label."""

    key: ClassVar[str] = "names"
    usage: ClassVar[str] = "names"
    description: ClassVar[str] = "names in Python's standard library, labelled by kind (lines of different lengths)"

    def read(self, progress: Progress) -> tuple[list[str], dict[str, np.ndarray]]:
        library = Path(sysconfig.get_path("stdlib"))
        found: dict[str, str] = {}
        files = source_files(library)
        with progress("Reading the names in Python", len(files)) as advance:
            for path in files:
                for name, kind in names_in(path):
                    if not name.startswith("_") and name.isascii():
                        found.setdefault(name, kind)
                advance(1)
        if len(found) < FEWEST:
            raise ValueError(f"{library} has no Python sources to read names from; give lines of your own")
        names = sorted(found)
        return names, {"kind": np.array([found[name] for name in names], object)}


def names_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names that a source file defines, and what each is: exception, class, function, constant, argument."""
    for node in nodes_of(path):
        if isinstance(node, ast.ClassDef):
            yield node.name, "exception" if node.name.endswith(EXCEPTIONS) else "class"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, "function"
            yield from ((argument.arg, "argument") for argument in node.args.args)
        elif isinstance(node, ast.Assign):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            yield from ((name, "constant") for name in names if name.isupper() and len(name) > 1)
