"""Checksums of the code that a result was made with."""

import ast

import pytest

from unordinal import DataSpec, configured
from unordinal.model import CategoricalModel
from unordinal.reproduce import code
from unordinal.reproduce.code import closure, code_of

SPEC = DataSpec("toy", num_classes=3, event_shape=(4,))


def model(name: str) -> CategoricalModel:
    return configured(name).model.build(SPEC)


def test_equal_models_have_the_same_checksum_and_others_another() -> None:
    assert code_of(model("arm")) == code_of(model("arm"))
    assert code_of(model("arm")) != code_of(model("absorbing"))


@pytest.mark.parametrize(
    ("changed", "affected"),
    [
        ("unordinal.diffusion.absorbing", {"absorbing"}),
        ("unordinal.models.autoregressive", {"arm"}),
        ("unordinal.train.loop", {"arm", "absorbing"}),
        ("unordinal.surjections.threshold", set()),
    ],
)
def test_only_models_that_use_a_module_change_with_it(
    changed: str, affected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {name: code_of(model(name)) for name in ("arm", "absorbing")}
    checksum = code.checksum
    monkeypatch.setattr(code, "checksum", lambda name: b"other" if name == changed else checksum(name))
    assert {name for name in before if code_of(model(name)) != before[name]} == affected


def test_modules_that_only_read_or_show_do_not_count() -> None:
    found = closure({"unordinal.models.autoregressive", "unordinal.train.loop"})
    assert "unordinal.numerics" in found
    assert not {name for name in found if name.split(".")[1] in ("cli", "web", "data", "tasks")}


def test_docstrings_do_not_count() -> None:
    text = (code.ROOT / "numerics.py").read_text()
    whole = ast.parse(text)
    told = [
        ast.get_docstring(node, clean=False)
        for node in (whole, *whole.body)
        if isinstance(node, ast.FunctionDef | ast.Module)
    ]
    written = ast.dump(code.tree_of("unordinal.numerics"))
    assert sum(words is not None for words in told) > 3
    assert all(repr(words) in ast.dump(whole) and repr(words) not in written for words in told if words)
