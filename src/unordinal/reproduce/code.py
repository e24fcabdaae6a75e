"""The checksum of the code that a result was made with: what a model, its noise and its training import."""

import ast
import hashlib
from functools import lru_cache
from pathlib import Path

from unordinal.model import CategoricalModel

ROOT = Path(__file__).parents[1]
SCIENCE = ("numerics", "model", "nets", "flows", "surjections", "diffusion", "models", "train", "evaluate")
ALWAYS = ("unordinal.train.loop", "unordinal.train.optim", "unordinal.train.average", "unordinal.evaluate.scorer")


def code_of(model: CategoricalModel) -> str:
    """Return the checksum of the modules that a model's parts come from, and of those that they import.

    Docstrings, comments and the layout of the code do not count.
    """
    parts = [part for module in model.modules() for part in (module, *vars(module).values())]
    classes = {base for part in parts for base in type(part).__mro__}
    names = {kind.__module__ for kind in classes if kind.__module__.startswith("unordinal.")}
    digest = hashlib.sha256()
    for name in sorted(closure(names | set(ALWAYS))):
        digest.update(name.encode() + checksum(name))
    return digest.hexdigest()[:16]


def closure(names: set[str]) -> set[str]:
    """Return modules and all that they import, as far as these hold what is computed."""
    found: set[str] = set()
    waiting = [name for name in names if is_science(name)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [other for other in imports(name) if is_science(other)]
    return found


def is_science(name: str) -> bool:
    """Return whether a module holds something that is computed, rather than read or shown."""
    return name.split(".")[1] in SCIENCE


@lru_cache
def tree_of(name: str) -> ast.Module:
    """Return the syntax tree of a module without docstrings."""
    path = ROOT.joinpath(*name.split(".")[1:])
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [  # type: ignore[attr-defined]
                part for part in body if not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
            ]
    return tree


@lru_cache
def checksum(name: str) -> bytes:
    """Return the checksum of the code of a module."""
    return hashlib.sha256(ast.dump(tree_of(name)).encode()).digest()


@lru_cache
def imports(name: str) -> tuple[str, ...]:
    """Return the modules of this package that a module imports."""
    found = []
    for node in ast.walk(tree_of(name)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("unordinal."):
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [module for module in inner if ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py").is_file()]
            found.append(node.module)
    return tuple(found)
