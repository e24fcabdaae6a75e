"""`unordinal correct`."""

import io
import sys
from pathlib import Path

import pytest
from conftest import Cli, refused

from unordinal.cli.correct import coloured
from unordinal.tasks.correcting import Correction, Suggestion


def test_a_text_comes_back_corrected(cli: Cli, diffusions: dict[str, Path], arms: dict[str, Path]) -> None:
    for words in (["--run", diffusions["uniform"]], ["--run", arms["arm"]], ["--run", arms["arm"], "--beam", "4"]):
        result = cli("correct", "The quick brewn fox, 3 times!", *words, "--json")
        assert result.code == 0, result.err
        text, done = "The quick brewn fox, 3 times!", 0
        assert ", 3 " in result.json["text"]
        for s in result.json["suggestions"]:  # what is told is what is done
            start = s["start"] + done
            assert text[start : start + len(s["old"])] == s["old"]
            text, done = text[:start] + s["new"] + text[start + len(s["old"]) :], done + len(s["new"]) - len(s["old"])
        assert text == result.json["text"]


def test_nothing_sure_returns_byte_for_byte(
    cli: Cli, diffusions: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    raw = "Zoë\u0301 said:\r\n\t“hi” 😀 שלום\x00 end\n\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw.encode())))
    result = cli("correct", "--run", diffusions["uniform"], "--threshold", "1")
    assert result.code == 0, result.err
    assert result.out.replace("\r\n", "\n") == raw.replace("\r\n", "\n")  # the capture translates line ends
    path = tmp_path / "same.txt"
    path.write_text("plain words")
    assert cli("correct", "--file", path, "--run", diffusions["uniform"], "--threshold", "1").out == "plain words"


def test_colours_strike_out_what_is_replaced() -> None:
    found = Correction("the", (Suggestion(1, "e", "h", 0.9), Suggestion(2, "h", "e", 0.8)))
    assert coloured("teh", found) == "t\x1b[2;9;31me\x1b[0m\x1b[1;32mh\x1b[0m\x1b[2;9;31mh\x1b[0m\x1b[1;32me\x1b[0m"


def test_people_s_mistakes_are_mended_by_default(cli: Cli, tmp_path: Path) -> None:
    typed = "The goverment, in 1999, was begining to recieve them"
    assert cli("correct", typed).out == "The government, in 1999, was beginning to receive them\n"
    (tmp_path / "words.txt").write_text("Goverment\nteh")
    kept = cli("correct", typed, "--keep", tmp_path / "words.txt").out
    assert kept == "The goverment, in 1999, was beginning to receive them\n"


def test_what_cannot_be_corrected_is_refused(cli: Cli, diffusions: dict[str, Path], arms: dict[str, Path]) -> None:
    run = ["--run", diffusions["uniform"]]
    refused(cli("correct", "", *run), "the text is empty")
    for rate in ("0", "1", "nan"):
        refused(cli("correct", "a", *run, "--error-rate", rate), "--error-rate must be a number above 0 and below 1")
    refused(cli("correct", "a", *run, "--error-rate", "0.97"), "--error-rate must be above 0 and below 0.963, got 0.97")
    refused(cli("correct", "a", *run, "--threshold", "2"), "--threshold must be a number between 0 and 1, got 2")
    refused(cli("correct", "a", *run, "--passes", "0"), "--passes must be a whole number of at least 1, got 0")
    refused(cli("correct", "a", *run, "--method", "beam"), "needs an autoregressive model")
    refused(cli("correct", "a", "--run", arms["arm"], "--method", "pass"), "needs a diffusion with uniform noise")
    refused(cli("correct", "a", "--run", diffusions["maps"]), "is for text")
    refused(cli("correct", "a", "--run", "pretrained:tex8-uniform"), "unknown pretrained model 'tex8-uniform'")
