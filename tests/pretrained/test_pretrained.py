"""The models that come with the package."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import unordinal
from unordinal.pretrained import HERE, PARAGRAPH, PRETRAINED, pretrained_folder

LIMITS = {"english-arm": 16, "text8-arm": 24, "text8-uniform": 8, "text8-absorbing": 8}  # megabytes


@pytest.mark.parametrize("name", PRETRAINED)
def test_a_fixed_paragraph_has_the_bits_of_the_registry(name: str) -> None:
    began = time.monotonic()
    run = unordinal.load(f"pretrained:{name}")
    assert time.monotonic() - began < 5  # far below a second, but machines are busy
    assert run.vocabulary is not None
    x = run.vocabulary.encode(PARAGRAPH).unsqueeze(0)
    settings: dict[str, Any] = {} if run.model.is_exact else {"repeats": 64}
    score = unordinal.score(run.model, x, seed=0, **settings)
    per_character = score.bits_per_dim * x.shape[1] / len(PARAGRAPH)
    assert per_character == pytest.approx(PRETRAINED[name].paragraph_bits, abs=0.005)


@pytest.mark.parametrize("name", PRETRAINED)
def test_weights_are_small_and_described(name: str) -> None:
    folder = pretrained_folder(name)
    assert (folder / "model.safetensors").stat().st_size <= LIMITS[name] << 20
    card = (folder / "README.md").read_text()
    for part in ("Wikipedia", "CC BY-SA", "unordinal train", "bits per character", "not good for", "±"):
        assert part in card, part
    config = json.loads((folder / "config.json").read_text())
    assert "/" not in config["run"]["data"]["path"]
    assert "/" not in config["data"]["name"]


def test_the_folder_holds_what_the_registry_names() -> None:
    there = {path.parent.name for path in HERE.glob("*/model.safetensors")}
    assert there == set(PRETRAINED)
    assert all(Path(HERE / name / "README.md").is_file() for name in PRETRAINED)


@pytest.mark.parametrize("name", PRETRAINED)
def test_they_do_what_they_are_for(name: str) -> None:
    run = unordinal.load(f"pretrained:{name}")
    if name.endswith("arm"):
        (text,) = run.sample(1, prompt="the ", length=40)
        assert text.startswith("the ")
        plain, shuffled = run.bits([PARAGRAPH, "".join(sorted(PARAGRAPH))])
        assert plain.bits < shuffled.bits
    elif name == "text8-uniform":
        assert run.correct("the population of the untied states", error_rate=0.05).text.startswith("the population")
    else:
        filled = run.fill("the capital of france and the unit__ kingdom", num=3)
        assert "united kingdom" in filled.text
