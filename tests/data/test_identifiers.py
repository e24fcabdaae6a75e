"""Names of the standard library."""

from pathlib import Path

from unordinal.data import load_data
from unordinal.data.identifiers import names_in


def test_names_have_kinds() -> None:
    data = load_data("names")
    assert data.spec.ends
    (label,) = data.spec.labels
    assert label.values == ("argument", "class", "constant", "exception", "function")
    assert min(label.counts) > 50
    assert len(data.train) > 5000


def test_names_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pond.py"
    path.write_text("DEPTH = 3\nclass DryError(Exception):\n    def dive(self, depth): ...\nclass Frog: ...\n")
    found = dict(names_in(path))
    assert found == {
        "DEPTH": "constant",
        "DryError": "exception",
        "dive": "function",
        "self": "argument",
        "depth": "argument",
        "Frog": "class",
    }
    path.write_text("def (")
    assert list(names_in(path)) == []
