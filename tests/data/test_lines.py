"""Lines as examples: what is read, what is refused, and that nothing is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.data import load_data, source_of
from unordinal.data.lines import LinesSource

NAMES = ["frog", "", "toad", "newt", "axolotl", "eft", "frog"] * 10


def shown(data: Any) -> list[str]:
    """All examples as texts."""
    return [data.spec.show(x) for split in (data.train, data.val, data.test) for x in split]


def file_of(folder: Path, text: str) -> Path:
    path = folder / "names.txt"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("between", ["\n", "\r\n"])
def test_every_line_of_a_file_is_an_example(tmp_path: Path, between: str, end: str) -> None:
    path = file_of(tmp_path, "\ufeff" + between.join([*NAMES, "eft"]) + end)
    data = load_data(path, lines=True)
    assert sorted(shown(data)) == sorted([*NAMES, "eft"])
    assert data.spec.event_shape == (7,)
    assert data.spec.ends
    assert "10 lines without symbols" in data.notes
    assert shown(load_data(path, lines=True, shuffle=False)) == [*NAMES, "eft"]
    assert shown(load_data(path, lines=True, shuffle_seed=1)) != shown(data)


def test_texts_in_python_and_columns_of_tables_are_lines(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"name": NAMES, "kind": ["a", "b"] * 35})
    frame.to_csv(tmp_path / "pond.csv", index=False)
    wanted = load_data(NAMES)
    assert shown(wanted) == shown(load_data(frame["name"])) == shown(load_data(frame, column="name"))
    from_file = load_data(tmp_path / "pond.csv", column="name", label_column=("kind",))
    assert shown(from_file) == shown(wanted)
    assert from_file.spec.labels[0].name == "kind"
    assert sum(from_file.spec.labels[0].counts) == len(from_file.train)


def test_labels_go_with_their_lines(tmp_path: Path) -> None:
    kinds = np.array(["short" if len(name) < 5 else "long" for name in NAMES])
    kinds[3] = ""
    (tmp_path / "kinds.txt").write_text("\n".join(kinds) + "\n")
    data = load_data(file_of(tmp_path, "\n".join(NAMES)), lines=True, label_file=str(tmp_path / "kinds.txt"))
    (label,) = data.spec.labels
    assert label.values == ("long", "short")
    missing = 0
    for split in (data.train, data.val, data.test):
        for place, x in enumerate(split):  # type: ignore[var-annotated,arg-type]
            assert split.labels is not None
            value = int(split.labels[place, 0])
            missing += value == 2
            assert value == 2 or label.values[value] == ("short" if len(data.spec.show(x)) < 5 else "long")
    assert missing == 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=20, max_size=30))
def test_any_texts_come_back(texts: list[str]) -> None:
    data = load_data([*texts, "ab"])
    assert sorted(shown(data)) == sorted([*texts, "ab"])


def test_long_lines_are_refused_by_number_and_length_or_cut(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"line 5 has 7 symbols, but `length` is 5; give a larger one, or cut"):
        load_data(NAMES, length=5)
    data = load_data(NAMES, length=5, cut=True)
    assert "axolo" in shown(data)
    assert "10 lines cut at 5 symbols" in data.notes
    path = file_of(tmp_path, "a\n" + "b" * 10_000_000 + "\nc\n")
    with pytest.raises(
        ValueError, match=r"line 2 has 10,000,000 symbols, but lines of more than 4,096 need a `length`"
    ):
        load_data(path, lines=True)
    assert load_data(NAMES, length=12).spec.event_shape == (12,)


@pytest.mark.parametrize(
    ("texts", "settings", "message"),
    [
        (["ab", "cd"], {"label_column": ("kind",)}, "`label_column` names columns of a table"),
        (["ab", "cd"], {"alphabet": "text9"}, "unknown alphabet 'text9'; did you mean text8"),
        (["ab", "c1"] * 20, {"alphabet": "text8"}, r"line 2: expected a-z and space, got '1' at position 1"),
        ([chr(300 + k) for k in range(400)], {"alphabet": "chars"}, "more than 256 different characters"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(texts: list[str], settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_data(texts, **settings)


def test_other_numbers_of_labels_than_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "kinds.txt").write_text("a\nb\n")
    with pytest.raises(ValueError, match=r"kinds.txt has 2 labels, but there are 70 examples in the texts"):
        load_data(NAMES, label_file=str(tmp_path / "kinds.txt"))


def test_missing_labels_in_python() -> None:
    given: Any = LinesSource(texts=NAMES, given_labels=["a", None, float("nan"), "b", ""] * 14).load()
    assert given.spec.labels[0].values == ("a", "b")
    assert np.bincount(
        np.concatenate([part.labels[:, 0] for part in (given.train, given.val, given.test)])
    ).tolist() == [14, 14, 42]
    assert any("label label of 2 values" in note for note in given.notes)
    assert shown(load_data(np.array(NAMES))) == shown(load_data(NAMES))


def test_one_line_and_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="all lines are empty"):
        load_data(["", ""])
    with pytest.raises(ValueError, match="the val split has no examples"):
        load_data(file_of(tmp_path, "frog"), lines=True).require("train", "val")
    with pytest.raises(ValueError, match="is empty; expected one example per line"):
        load_data(file_of(tmp_path, ""), lines=True)


def test_lines_and_columns_are_for_texts_and_tables(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((4, 3), int))
    with pytest.raises(ValueError, match="`lines` is for text files"):
        source_of(tmp_path / "x.npy", lines=True)
    with pytest.raises(ValueError, match="`column` is for tables"):
        source_of("docs", column="smiles")
    (tmp_path / "x.csv").write_text("smiles\nC\n")
    with pytest.raises(ValueError, match="unknown column 'smile'; did you mean smiles"):
        load_data(tmp_path / "x.csv", column="smile")
    with pytest.raises(ValueError, match="is a table; name the column"):
        load_data(tmp_path / "x.csv", lines=True)
    assert isinstance(source_of(f"lines:{tmp_path / 'x.txt'}"), LinesSource)


def test_a_text_that_looks_like_lines_says_so(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text("\n".join(["frog", "toad"] * 300))
    (tmp_path / "prose.txt").write_text("\n".join(["It was a frog.", "Or so it seemed,"] * 300))
    assert any("--lines" in note for note in load_data(tmp_path / "names.txt").notes)
    assert not any("--lines" in note for note in load_data(tmp_path / "prose.txt").notes)
