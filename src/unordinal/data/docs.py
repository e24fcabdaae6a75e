"""The default text: the docstrings of the standard library of the running Python, which needs no download."""

import ast
import hashlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from unordinal.data.source import TextSettings
from unordinal.data.splits import Data
from unordinal.data.storage import data_folder, replacing
from unordinal.data.text import TextFile, load_text
from unordinal.data.vocabularies import Vocabulary
from unordinal.progress import Progress, silent

EXCLUDED = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib2to3", "turtledemo"}
HELD_OUT = 0.05  # fraction of the text in val, and the same in test
SMALLEST = 100_000  # characters of train; fewer mean that Python was installed without its sources
SEPARATOR = "\n\n"


def source_files(library: Path) -> list[Path]:
    """Return the source files of the standard library, without its tests."""
    return sorted(path for path in library.rglob("*.py") if not EXCLUDED & set(path.relative_to(library).parts))


def docstrings(library: Path, progress: Progress) -> dict[str, list[str]]:
    """Return the distinct docstrings of each top-level module."""
    files = source_files(library)
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    with progress("Reading the docstrings of Python", len(files)) as advance:
        for path in files:
            module = path.relative_to(library).parts[0].removesuffix(".py").strip("_")
            for docstring in docstrings_of(path):
                if docstring not in seen:
                    seen.add(docstring)
                    found.setdefault(module, []).append(docstring)
            advance(1)
    return found


def nodes_of(path: Path) -> list[ast.AST]:
    """Return the nodes of the syntax tree of a source file; none if the file has errors, as a few of Python's do."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in old sources
            return list(ast.walk(ast.parse(path.read_bytes())))
    except (SyntaxError, ValueError):
        return []


def docstrings_of(path: Path) -> Iterator[str]:
    """Yield the docstrings of a source file without their indentation."""
    for node in nodes_of(path):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            # ASCII only, so that characters and bytes are equally many; this leaves out few docstrings
            if text and text.isascii() and all(c.isprintable() or c == "\n" for c in text):
                yield text


def split_by_module(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Assign the docstrings of whole modules to train, val or test, in the order of the hashes of the modules' names.

    Docstrings of one module are often similar, so they must not be in different splits.
    """
    modules = sorted(found, key=lambda name: hashlib.sha256(name.encode()).digest())
    quota = HELD_OUT * sum(len(text) for texts in found.values() for text in texts)
    parts: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    sizes = dict.fromkeys(parts, 0.0)
    for module in modules:
        size = sum(len(text) for text in found[module])
        # a large package would fill val or test alone, so these take only modules up to half of their size
        part = next((p for p in ("test", "val") if sizes[p] < quota and size < quota / 2), "train")
        parts[part] += found[module]
        sizes[part] += size
    return parts


def as_text8(text: str) -> str:
    """Return the text in lower case, with every run of characters other than a-z replaced by one space."""
    return re.sub("[^a-z]+", " ", text.lower()).strip()


@dataclass(frozen=True)
class DocsSource(TextSettings):
    """The docstrings, reduced to a-z and space (alphabet text8) or unchanged (chars, bytes)."""

    key: ClassVar[str] = "docs"
    usage: ClassVar[str] = "docs"
    description: ClassVar[str] = "docstrings of Python's standard library (no download; alphabet text8, chars or bytes)"

    def load(self, *, vocabulary: Vocabulary | None = None, progress: Progress = silent) -> Data:
        is_text8 = (vocabulary.kind if vocabulary else self.alphabet) == "text8"
        path, official = written_docs("text8" if is_text8 else "full", progress)
        return load_text(TextFile.of(path), self, vocabulary=vocabulary, progress=progress, official_split=official)


def written_docs(form: str, progress: Progress) -> tuple[Path, str]:
    """Write the docstrings to the cache, unless they are there; return the path of the text and its split."""
    version = "{}.{}.{}".format(*sys.version_info)
    path = data_folder() / "docs" / f"python-{version}-{form}.txt"
    sizes_path = path.with_suffix(".split")
    if not sizes_path.exists():
        library = Path(sysconfig.get_path("stdlib"))
        parts = split_by_module(docstrings(library, progress))
        if form == "text8":
            joined = {name: " ".join(filter(None, map(as_text8, texts))) + " " for name, texts in parts.items()}
        else:
            joined = {name: SEPARATOR.join(texts) + SEPARATOR for name, texts in parts.items()}
        if len(joined["train"]) < SMALLEST:
            raise ValueError(
                f"{library} has no Python sources to read docstrings from; set `data` to text:PATH, a text of your own"
            )
        with replacing(path) as file:
            file.write("".join(joined[name] for name in ("train", "val", "test")).encode())
        with replacing(sizes_path) as file:
            file.write(",".join(str(len(joined[name])) for name in ("train", "val", "test")).encode())
    return path, sizes_path.read_text()
