"""`unordinal bits`."""

import json
from pathlib import Path

import pytest
from conftest import Cli, refused

from unordinal.cli import run


def test_lines_are_ranked_by_their_bits(cli: Cli, arms: dict[str, Path]) -> None:
    Path("lines.txt").write_text("the quick brown fox\n\nzzzz qqqq xxxx\nthe lazy dog\n")
    result = cli("bits", "lines.txt", "--run", arms["arm"], "--json", "--positions")
    assert result.code == 0, result.err
    lines = result.json["lines"]
    assert sorted(line["line"] for line in lines) == [1, 3, 4]
    values = [line["bits_per_symbol"] for line in lines]
    assert values == sorted(values, reverse=True)
    for line in lines:
        assert sum(line["positions"]) == pytest.approx(line["bits"])
        assert line["error"] is None
    plain = cli("bits", "lines.txt", "--run", arms["arm"], "--top", "1", "--positions")
    assert plain.out.count("\n") == 1
    assert "1 line: line, bits per character" in plain.err


def test_references_and_typical_lines(cli: Cli, arms: dict[str, Path], diffusions: dict[str, Path]) -> None:
    Path("lines.txt").write_text("the quick brown fox jumps\nthe the the the the the the\n")
    for words in (["--against", "xz"], ["--against", "counts"], ["--against", arms["arm"]], ["--typical"]):
        result = cli("bits", "lines.txt", "--run", arms["arm"], *words, "--json")
        assert result.code == 0, result.err
        scores = [line["score"] for line in result.json["lines"]]
        assert scores == sorted(scores, reverse=True)
        if words[-1] == arms["arm"]:
            assert scores == [0, 0]  # a model against itself
    bound = cli("bits", "lines.txt", "--run", diffusions["absorbing"], "--json")
    assert all(line["error"] > 0 for line in bound.json["lines"])
    assert " ± " in cli("bits", "lines.txt", "--run", diffusions["absorbing"]).out


def test_a_heat_map_is_one_page_without_outside_requests(cli: Cli, arms: dict[str, Path]) -> None:
    result = cli("bits", "--text", "a <b> & c", "--run", arms["arm"], "--html", "heat.html")
    assert result.code == 0, result.err
    page = Path("heat.html").read_text()
    assert "http" not in page
    assert "<b>" in page
    assert page.count('title="') == 5  # a, b, c and the two runs between them


def test_what_cannot_be_scored_is_refused(cli: Cli, arms: dict[str, Path], diffusions: dict[str, Path]) -> None:
    run = ["--run", arms["arm"]]
    refused(cli("bits", "--text", " \n", *run), "the text is empty")
    refused(cli("bits", "none.txt", *run), "cannot read none.txt")
    refused(cli("bits", "--text", "a", *run, "--top", "0"), "--top must be at least 1")
    refused(cli("bits", "--text", "a", *run, "--typical", "--against", "xz"), "not both")
    refused(cli("bits", "--text", "a", "--run", diffusions["absorbing"], "--positions"), "need an autoregressive model")
    refused(cli("bits", "--text", "a", "--run", diffusions["maps"]), "is for text")
    refused(cli("bits", "--text", "a", *run, "--against", diffusions["maps"]), "has another alphabet")
    Path("bad.txt").write_bytes(b"\xff\xfe")
    refused(cli("bits", "bad.txt", *run), "is not UTF-8 text")


def test_characters_that_the_alphabet_lacks_are_noted(cli: Cli, arms: dict[str, Path]) -> None:
    altered = cli("bits", "--text", "ABC, 1999", "--run", arms["arm"])
    assert "the model's alphabet lacks" in altered.err
    assert "lacks" not in cli("bits", "--text", "the cat", "--run", arms["arm"]).err


def test_records_and_columns_are_lines_of_the_runs_that_were_trained_on_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = ["ACGT"[: 1 + k % 4] for k in range(60)]
    (tmp_path / "x.fasta").write_text("".join(f">r{k}\n{text}\n" for k, text in enumerate(records)))
    (tmp_path / "x.csv").write_text("dna,kind\n" + "".join(f"{text},{len(text)}\n" for text in records))
    small = ["--steps", "1", "--model.net.width", "8", "--model.net.num-heads", "1"]
    for number, words in enumerate((["x.fasta"], ["x.csv", "--column", "dna"])):
        path, out = str(tmp_path / words[0]), str(tmp_path / f"run{number}")
        assert run(["train", "arm", "--data", path, *words[1:], *small, "--out", out]) == 0
        capsys.readouterr()
        assert run(["bits", path, "--run", out, "--json"]) == 0
        assert len(json.loads(capsys.readouterr().out)["lines"]) == 60
