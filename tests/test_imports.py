"""Imports point one way: data -> networks and processes -> models -> train -> evaluate -> api -> command line."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "unordinal"
ORDER = [
    {"config", "model_config", "progress", "numerics"},
    {"data"},
    {"nets", "flows", "surjections", "diffusion", "model"},
    {"models"},
    {"presets"},
    {"train"},
    {"evaluate", "tasks"},
    {"api"},
    {"cli", "web"},
    {"__main__", "__init__"},
]


def level(part: str) -> int:
    found = [number for number, parts in enumerate(ORDER) if part in parts]
    assert found, f"unordinal.{part} has no place in the order of imports"
    return found[0]


def imports(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append(node.module)
        elif isinstance(node, ast.ImportFrom):
            found.append("unordinal.relative")
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name.split(".")[1] for name in found if name.startswith("unordinal.")]


def test_nothing_imports_to_its_right() -> None:
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for other in imports(path):
            assert level(other) <= level(part), f"{path.relative_to(SOURCE)} imports unordinal.{other}"


def test_no_pickle_is_executed() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
        assert "weights_only=False" not in text
        assert text.count("torch.load(") == text.count("weights_only=True")
