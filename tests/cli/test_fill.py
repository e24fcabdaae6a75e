"""`unordinal fill`."""

from pathlib import Path

import numpy as np
from conftest import Cli, refused
from PIL import Image


def test_gaps_of_a_text_are_filled(cli: Cli, arms: dict[str, Path]) -> None:
    result = cli("fill", "The q__ck fox, 3", "--run", arms["arm"], "--num", "3", "--json")
    assert result.code == 0, result.err
    proposals = result.json["proposals"]
    assert 1 <= len(proposals) <= 3
    assert all(p["text"][:5] == "The q" and p["text"][7:] == "ck fox, 3" for p in proposals)
    scores = [p["log_prob"] for p in proposals]
    assert scores == sorted(scores, reverse=True)
    again = cli("fill", "The q__ck fox, 3", "--run", arms["arm"], "--num", "3", "--json")
    assert again.json == result.json  # a seed reproduces
    shown = cli("fill", "the c*t", "--gap", "*", "--run", arms["arm"], "--num", "2")
    assert shown.out.splitlines()[0].endswith("t")
    assert "exact, of the whole" in shown.err


def test_the_hole_of_a_map_is_filled(cli: Cli, diffusions: dict[str, Path]) -> None:
    hole = np.zeros((8, 16), np.uint8)
    hole[2:4, 3:9] = 255
    Image.fromarray(hole).save("hole.png")
    result = cli("fill", "--run", diffusions["maps"], "--mask", "hole.png", "--grid", "out.png", "--num", "2", "--json")
    assert result.code == 0, result.err
    assert Path("out.png").stat().st_size > 1000
    maps = [np.array(p["map"]) for p in result.json["proposals"]]
    assert all((one[hole == 0] == maps[0][hole == 0]).all() for one in maps)
    refused(cli("fill", "--run", diffusions["maps"], "--mask", "hole.png"), "a map needs --mask")
    Image.fromarray(hole[:4]).save("small.png")
    words = ["--run", diffusions["maps"], "--grid", "out.png"]
    refused(cli("fill", *words, "--mask", "small.png"), "must have the same size, got 8 x 16 and 4 x 16")
    Image.fromarray(np.zeros_like(hole)).save("black.png")
    refused(cli("fill", *words, "--mask", "black.png"), "is all black: there is nothing to fill")
    refused(cli("fill", *words, "--mask", "none.png"), "cannot read none.png")
    Image.fromarray(np.full((8, 16), 99, np.uint8)).save("wrong.png")
    refused(cli("fill", *words, "--mask", "hole.png", "--map", "wrong.png"), "wrong.png")


def test_what_cannot_be_filled_is_refused(cli: Cli, arms: dict[str, Path]) -> None:
    run = ["--run", arms["arm"]]
    refused(cli("fill", "", *run), "the text is empty")
    refused(cli("fill", "no gap", *run), "the text has no gap")
    refused(cli("fill", "____", *run), "the text is all gaps")
    refused(cli("fill", "a_b", *run, "--num", "0"), "--num must be a whole number of at least 1, got 0")
    refused(cli("fill", "a_b", *run, "--gap", "xx"), "--gap must be ", "got 'xx'")
