"""The layout: imports point one way, nobody asks which model it has, tests mirror the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unordinal"
ORDER = [
    {
        "abilities",
        "checks",
        "columns",
        "config",
        "console",
        "errors",
        "experiments",
        "names",
        "progress",
        "numerics",
        "products",
        "model",
        "overrides",
        "settings",
    },
    {"data"},
    {"nets", "flows", "surjections", "diffusion"},
    {"models"},
    {"recipes"},
    {"runs", "parallel"},
    {"train"},
    {"evaluate"},
    {"tasks"},
    {"pretrained"},
    {"run"},
    {"api", "reproduce"},
    {"cli", "web", "sklearn"},
    {"__main__", "__init__"},
]


def level(part: str) -> int:
    found = [number for number, parts in enumerate(ORDER) if part in parts]
    assert found, f"unordinal.{part} has no place in the order of imports"
    return found[0]


def imports(path: Path) -> list[str]:
    """What a file imports of this package, by its first part; what only type checkers import does not count."""
    found = []
    for node in walked(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.append(node.module)
        elif isinstance(node, ast.ImportFrom):
            found.append("unordinal.relative")
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return [name.split(".")[1] for name in found if name.startswith("unordinal.")]


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, but for those under `if TYPE_CHECKING`."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING"):
            yield from walked(child)


def test_nothing_imports_to_its_right() -> None:
    for path in SOURCE.rglob("*.py"):
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for other in imports(path):
            if (part, other) in (("config", "recipes"), ("config", "data")):  # to read a configuration back
                continue
            assert level(other) <= level(part), f"{path.relative_to(SOURCE)} imports unordinal.{other}"


# Classes of models and of their settings, which only the two folders that hold them may ask for.
MODEL_CLASSES = {
    node.name
    for folder in ("models", "recipes")
    for path in (SOURCE / folder).glob("*.py")
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
} - {"Recipe", "Plan"}
ASKING = {"isinstance", "issubclass", "type", "hasattr", "getattr"}


def questions(path: Path) -> list[str]:
    """Where a file asks which class a model has: it imports one, or asks about something's class, model or name."""
    found = []
    text = path.read_text()
    for node in ast.walk(ast.parse(text)):
        line = text.splitlines()[getattr(node, "lineno", 1) - 1]
        shown = f"{path.name}:{getattr(node, 'lineno', 0)}: {line.strip()}"
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("unordinal.models.")
            and "bound" not in (node.module or "")
        ):
            found.append(shown)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ASKING:
            words = {part.id for arg in node.args for part in ast.walk(arg) if isinstance(part, ast.Name)}
            about = ast.unparse(node.args[0]) if node.args else ""
            is_named = node.func.id == "type" and ("__name__" in line or "TrainArgs[" in line)  # only written out
            is_any = "CategoricalModel" in words or is_named
            if words & MODEL_CLASSES or (about.rpartition(".")[2] == "model" and not is_any):
                found.append(shown)
        if isinstance(node, ast.Compare) and "__class__" in ast.unparse(node):
            found.append(shown)
        if isinstance(node, ast.Compare) and re.search(r"\.(recipe|preset)\b", ast.unparse(node)):
            constants = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            found += [shown] if any(isinstance(value, str) for value in constants) else []
    return found


def test_nobody_asks_which_model_it_has() -> None:
    """Outside models/ and recipes/ a model is asked what it can do, never which class it has."""
    inside = {"models", "recipes", "__init__.py", "model.py"}
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] not in inside:
            assert questions(path) == [], path


@pytest.mark.parametrize(
    "line",
    [
        "from unordinal.models.diffusion import Diffusion",
        "isinstance(run.model, ArgmaxFlow)",
        "hasattr(model, 'steps')",
        "type(run.model) is Diffusion",
        "run.model.__class__ == x",
        "config.recipe == 'arm'",
        "isinstance(config.model, ArmSettings)",
    ],
)
def test_a_question_is_noticed(line: str, tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(line)
    assert questions(tmp_path / "x.py")


DECLARATIONS = {"errors", "settings", "recipe"}  # there is nothing in them to check
# Of whole runs in processes of their own, of the page in a browser, of a GPU, of faults, of all recipes alike.
BEHAVIOUR = {"test_resume", "test_page", "test_devices", "test_faults", "test_forms"}


def test_tests_mirror_the_source() -> None:
    tests = SOURCE.parents[1] / "tests"
    source = {path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py") if path.stem[0] != "_"}
    wanted = {path.parent / f"test_{path.name}" for path in source if path.name not in DECLARATIONS}
    packages = {path.relative_to(SOURCE).parent for path in SOURCE.rglob("__init__.py")}
    own = {folder / f"test_{folder.name}" for folder in packages if folder.name}
    there = {path.relative_to(tests).with_suffix("") for path in tests.rglob("test_*.py")}
    names = "imports readme acceptance security fuzz doors docs guides settings main site tutorials package results"
    top = {Path(f"test_{name}") for name in names.split()}
    assert sorted(map(str, wanted - there)) == []
    assert sorted(str(path) for path in there - wanted - own - top if path.name not in BEHAVIOUR) == []


def test_no_test_imports_another() -> None:
    for path in (SOURCE.parents[1] / "tests").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            module = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
            assert not module.rpartition(".")[2].startswith("test_"), f"{path} imports {module}"


def test_no_pickle_is_executed() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        assert "import pickle" not in text
        assert "allow_pickle=True" not in text
        assert "weights_only=False" not in text
        assert text.count("torch.load(") == text.count("weights_only=True")
