"""`unordinal classify`, and lines with labels on the command line."""

import json
from pathlib import Path

import pytest

from unordinal.cli import run

NAMES = ["aab", "abab", "aa", "baaa", "zz", "zyx", "xyzzy", "yx"] * 20
KINDS = ["low", "low", "low", "low", "high", "high", "high", "high"] * 20


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("names")
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n")
    (folder / "kinds.txt").write_text("\n".join(KINDS) + "\n")
    words = ["train", "arm", "--data", str(folder / "names.txt"), "--lines", "--labels", str(folder / "kinds.txt")]
    assert run([*words, "--steps", "200", "--model.net.width", "32", "--out", str(folder / "run")]) == 0
    return folder


def test_labels_are_found(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["classify", str(trained / "run")]) == 0
    shown = capsys.readouterr()
    assert "of those with a label were right" in shown.err
    assert "(exact)" in shown.err
    (trained / "new.txt").write_text("aba\nzyzy\n")
    assert run(["classify", str(trained / "run"), str(trained / "new.txt"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["label"] for row in found["examples"]] == ["low", "high"]
    assert [row["text"] for row in found["examples"]] == ["aba", "zyzy"]
    assert found["accuracy"] is None


def test_labels_are_found_from_another_folder(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(trained)
    words = ["train", "arm", "--data", "names.txt", "--lines", "--labels", "kinds.txt", "--steps", "1"]
    assert run([*words, "--model.net.width", "8", "--model.net.num-heads", "1", "--out", "here"]) == 0
    monkeypatch.chdir(tmp_path)
    assert run(["classify", str(trained / "here")]) == 0
    assert "of those with a label were right" in capsys.readouterr().err


def test_samples_of_a_label_are_lines(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", str(trained / "run"), "--num", "6", "--label", "label=high", "--guidance", "3", "--unique"]
    assert run(words) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert len(set(lines)) == 6
    assert sum(set(line) <= set("xyz") for line in lines) >= 4
    assert "of all draws unique" in shown.err
    assert run(["sample", str(trained / "run"), "--num", "3", "--novel", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["shares"]) == {"unique", "novel"}
    assert not set(found["samples"]) & set(NAMES)


def test_lines_are_scored_filled_and_ranked(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(trained / "run")
    assert run(["evaluate", path]) == 0
    assert "bits per character =" in (out := capsys.readouterr().out)
    assert "bits per line" in out
    assert run(["evaluate", path, "--data", str(trained / "names.txt")]) == 0
    assert "160 examples of names.txt" in capsys.readouterr().out
    assert run(["fill", "z*x", "--run", path, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert all(p["text"].startswith("z") and p["text"].endswith("x") for p in found["proposals"])
    assert run(["fill", "z_x", "--run", path]) == 0
    assert capsys.readouterr().out.splitlines()[0].endswith("x")
    assert run(["bits", "--text", "aab\nzzzzz", "--run", path]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    (trained / "some.csv").write_text("name,size\naab,3\nzz,2\n")
    assert run(["evaluate", path, "--data", str(trained / "some.csv")]) == 2
    assert "name the column that holds the texts" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sample", "RUN", "--label", "label=hihg"], "unknown value of the label label 'hihg'; did you mean high?"),
        (["sample", "RUN", "--guidance", "2"], "--guidance says how much labels count; give labels with --label"),
        (["bits", "--text", "aabaab", "--run", "RUN"], "has 6 symbols; lines of this model have at most 5"),
        (["classify", "pretrained:text8-arm"], "is for models that were trained with labels"),
    ],
)
def test_bad_input_is_one_line(
    trained: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([word.replace("RUN", str(trained / "run")) for word in words]) == 2
    assert message in capsys.readouterr().err
