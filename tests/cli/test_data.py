"""`unordinal data`: what is listed, described, drawn and compared with count models."""

from pathlib import Path

import numpy as np
from conftest import Cli, refused
from PIL import Image


def test_data_are_listed_and_described(cli: Cli, book: Path) -> None:
    assert "text:PATH" in cli("data").out
    described = cli("data", f"text:{book}", "--alphabet", "chars", "--length", 40, "--json").json
    assert described["num_classes"] == 27
    assert described["examples"] == {"train": 130, "val": 7, "test": 7}
    shown = cli("data", f"text:{book}", "--alphabet", "chars", "--length", 40)
    assert "the quick brown fox" in shown.out


def test_baselines_of_data(cli: Cli, book: Path) -> None:
    result = cli("data", "streets", "--height", 16, "--width", 32, "--baselines", "--json")
    assert 0 < result.json["baselines"]["counts given left, above, above left"] < 1.5
    result = cli("data", f"text:{book}", "--length", 32, "--baselines")
    assert "order-1 counts" in result.out
    np.save("rows.npy", np.zeros((20, 4), np.uint8) + np.arange(4, dtype=np.uint8))
    refused(cli("data", "array:rows.npy", "--baselines"), "count models are for texts and maps")


def size_of(name: str) -> tuple[int, int]:
    with Image.open(name) as image:
        return image.size


def test_data_are_described_and_drawn(cli: Cli) -> None:
    result = cli("data", "streets", "--height", 16, "--width", 32, "--grid", "data.png", "--json")
    assert result.code == 0, result.err
    assert result.json["event_shape"] == [16, 32]
    assert result.json["categories"][0][0] == "road"
    assert size_of("data.png")[0] > 200


def test_maps_are_not_printed_as_digits(cli: Cli) -> None:
    shown = cli("data", "streets", "--height", 16, "--width", 32).out
    assert "--grid FILE.png shows some of the maps." in shown
    assert "0 0 0 0" not in shown
