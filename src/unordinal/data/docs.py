"""The embedded default text: the docstrings of Python's own standard library. No download, no bundled file."""

import ast
import hashlib
import re
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from unordinal.config import DataConfig
from unordinal.data.spec import Vocabulary
from unordinal.data.splits import Data
from unordinal.data.storage import data_folder, replacing
from unordinal.data.text import TextFile, load_text
from unordinal.progress import Progress

EXCLUDED = {"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__", "lib2to3", "turtledemo"}
HELD_OUT = 0.05  # share of the text in val, and as much again in test
SMALLEST = 100_000  # characters; fewer means that Python came without its sources
SEPARATOR = "\n\n"


def docstrings(library: Path, progress: Progress) -> dict[str, list[str]]:
    """Distinct docstrings by top-level module, so that near copies within a package stay together."""
    files = sorted(path for path in library.rglob("*.py") if not EXCLUDED & set(path.relative_to(library).parts))
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


def docstrings_of(path: Path) -> Iterator[str]:
    """Every docstring of a source file, cleaned of its indentation."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in old sources
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return  # a few files of some versions are broken on purpose
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            # ASCII only, so that a count of characters is one of bytes; a handful of docstrings are left out
            if text and text.isascii() and all(c.isprintable() or c == "\n" for c in text):
                yield text


def split_by_module(found: dict[str, list[str]]) -> dict[str, list[str]]:
    """Docstrings of test, val and train: whole modules, in an order that their names' hashes shuffle."""
    modules = sorted(found, key=lambda name: hashlib.sha256(name.encode()).digest())
    quota = HELD_OUT * sum(len(text) for texts in found.values() for text in texts)
    parts: dict[str, list[str]] = {"train": [], "val": [], "test": []}
    sizes = dict.fromkeys(parts, 0.0)
    for module in modules:
        size = sum(len(text) for text in found[module])
        # a large package would swallow a held-out part whole, so those take only modules up to half their quota
        part = next((p for p in ("test", "val") if sizes[p] < quota and size < quota / 2), "train")
        parts[part] += found[module]
        sizes[part] += size
    return parts


def as_text8(text: str) -> str:
    """Lower case, every run of other characters one space."""
    return re.sub("[^a-z]+", " ", text.lower()).strip()


def load_docs(config: DataConfig, vocabulary: Vocabulary | None, progress: Progress) -> Data:
    """The docstrings in the 27-symbol form (alphabet text8) or as they are (chars, bytes)."""
    form = "text8" if (vocabulary.kind if vocabulary else config.alphabet) == "text8" else "full"
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
            raise ValueError(f"{library} has no sources to take docstrings from; give a text with `data` text:PATH")
        with replacing(path) as file:
            file.write("".join(joined[name] for name in ("train", "val", "test")).encode())
        with replacing(sizes_path) as file:
            file.write(",".join(str(len(joined[name])) for name in ("train", "val", "test")).encode())
    return load_text(TextFile.of(path), config, progress, vocabulary=vocabulary, official_split=sizes_path.read_text())
