"""Generative models of categorical data: argmax flows, multinomial diffusion and their baselines.

`fit` trains a model, `load` reads a trained one, and a run scores and samples:

    run = unordinal.fit("arm", "book.txt", minutes=5, out="runs/book")
    print(run.score())
    print(run.sample(3))

The public names are listed in `__init__.pyi`. They are imported when they are first used, so that `unordinal --help`
does not wait for torch.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any

__version__ = "0.2.0"

_MODULE_OF: dict[str, str] = {
    alias.name: node.module or ""
    for node in ast.parse(Path(__file__).with_suffix(".pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605 (a list of names)


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'unordinal' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
