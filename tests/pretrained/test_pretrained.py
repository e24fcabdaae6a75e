"""The models that come with the package."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SHARED_DATA, Cli

import unordinal
from unordinal.pretrained import HERE, PRETRAINED, pretrained_folder

# A paragraph that no model has seen, in the alphabet of text8.
PARAGRAPH = (
    "the old lighthouse stood on a narrow rock at the mouth of the harbour and every evening its keeper climbed the "
    "long stairs to light the lamp while ships from many countries waited for the tide to carry them home again"
)
MOLECULE = "CC1=CC(=O)NC1"
# Largest weights in megabytes, what the card says of the data, and bits of the paragraph per character,
# of the table's test rows, of a map, or of a molecule: exact, or the bound of 64 draws with seed 0.
EXPECTED: dict[str, tuple[int, tuple[str, ...], float]] = {
    "english-arm": (16, ("Wikipedia", "CC BY-SA"), 1.9769),
    "english-absorbing": (16, ("Wikipedia", "CC BY-SA"), 2.4150),
    "text8-arm": (20, ("Wikipedia", "CC BY-SA"), 1.9485),
    "text8-uniform": (8, ("Wikipedia", "CC BY-SA"), 2.6348),
    "landcover": (4, ("National Land Cover Database", "public domain"), 0.2769),
    "cafe": (4, ("generated",), 1.8567),
    "molecules": (4, ("QM9", "licence of the data was not found"), 1.3246),
}
MOST_MEGABYTES = 60  # of all of them


def bits_of(name: str) -> float:
    """Return the bits of an example that tells whether the weights are intact."""
    run = unordinal.load(f"pretrained:{name}")
    if name == "cafe":
        return run.score().bits_per_dim
    settings: dict[str, Any] = {} if run.model.is_exact else {"repeats": 64}
    if run.spec.is_map:
        x = (torch.arange(32)[:, None] // 8 * 2 + torch.arange(64) // 16) % 8  # squares of one class each
        return unordinal.score(run.model, x.unsqueeze(0), seed=0, **settings).bits_per_dim
    assert run.vocabulary is not None
    if name == "molecules":
        return run.bits([MOLECULE])[0].per_symbol
    x = run.vocabulary.encode(PARAGRAPH).unsqueeze(0)
    score = unordinal.score(run.model, x, seed=0, **settings)
    return score.bits_per_dim * x.shape[1] / len(PARAGRAPH)


@pytest.mark.parametrize("name", PRETRAINED)
def test_a_fixed_example_has_the_bits_that_the_weights_gave(name: str) -> None:
    assert bits_of(name) == pytest.approx(EXPECTED[name][2], abs=0.005)


@pytest.mark.parametrize("name", PRETRAINED)
def test_weights_are_small_and_described(name: str) -> None:
    began = time.monotonic()
    unordinal.load(f"pretrained:{name}")
    assert time.monotonic() - began < 5  # far below a second, but machines are busy
    folder, (megabytes, told, _) = pretrained_folder(name), EXPECTED[name]
    assert (folder / "model.safetensors").stat().st_size <= megabytes << 20
    card = (folder / "README.md").read_text()
    for part in (*told, "unordinal train", "bits per ", "not good for", "±"):
        assert part in card, part
    config = json.loads((folder / "config.json").read_text())
    assert "/" not in config["run"]["data"].get("path", "")
    assert "/" not in config["data"]["name"]


def test_all_weights_together_are_small() -> None:
    sizes = [path.stat().st_size for path in HERE.glob("*/model.safetensors")]
    assert sum(sizes) <= MOST_MEGABYTES << 20


def test_the_folder_holds_what_the_registry_names() -> None:
    there = {path.parent.name for path in HERE.glob("*/model.safetensors")}
    assert there == set(PRETRAINED) == set(EXPECTED)
    assert all(Path(HERE / name / "README.md").is_file() for name in PRETRAINED)


@pytest.mark.parametrize("name", PRETRAINED)
def test_they_do_what_they_are_for(name: str) -> None:
    run = unordinal.load(f"pretrained:{name}")
    if name in ("text8-arm", "english-arm"):
        (text,) = run.sample(1, prompt="the ", length=40)
        assert text.startswith("the ")
        plain, shuffled = run.bits([PARAGRAPH, "".join(sorted(PARAGRAPH))])
        assert plain.bits < shuffled.bits
    elif name == "text8-uniform":
        assert run.correct("the population of the untied states", error_rate=0.05).text.startswith("the population")
    elif name == "english-absorbing":
        assert "united kingdom" in run.fill("france and the unit__ kingdom", num=1).text
    elif name == "landcover":
        x = run.sample(1, steps=16, seed=0)[0]
        known = x.clone()
        known[8:16, 8:24] = -1
        filled = run.sample(1, known=known, steps=16, seed=1)[0]
        assert torch.equal(filled[known >= 0], x[known >= 0])
    elif name == "molecules":
        drawn = run.sample(20, label="rings=0", guidance=2, seed=0)
        assert sum(any(letter.isdigit() for letter in text) for text in drawn) <= 2  # a digit opens or closes a ring
    else:
        rows = run.sample(20, where=("weather=hot",), seed=0)
        assert set(rows["weather"]) == {"hot"}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRETRAINED)
def test_the_figures_of_a_card_come_from_its_weights(name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that a card names prints the figure next to it, in the folder of the data."""
    card = (HERE / name / "README.md").read_text()
    ((words, figure),) = re.findall(r"`unordinal (evaluate pretrained:[^`]+)` prints (\d+\.\d+) ± ", card)
    if "--data " in words:
        if not SHARED_DATA.is_dir():
            pytest.skip(f"the data are not at {SHARED_DATA}")
        monkeypatch.chdir(SHARED_DATA)
    printed = cli(*words.split(), "--json").json["bits_per_dim"]
    assert printed == pytest.approx(float(figure), abs=0.005)
