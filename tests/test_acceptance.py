"""What the whole must reach, measured end to end; minutes each."""

from pathlib import Path

import pytest
from conftest import SHARED_DATA, Cli


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_beats_the_order_1_counts(cli: Cli) -> None:
    values = cli("demo", "--json").json
    for score in values["models"].values():
        assert score["bits_per_dim"] + 3 * score["standard_error"] < values["baselines"]["order-1 counts"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_five_minutes_on_the_text8_prefix(cli: Cli) -> None:
    text = SHARED_DATA / "text8.prefix.xz"
    if not text.exists():
        pytest.skip(f"no {text}: the text8 prefix is not part of the project")
    words = ("--size", "tiny", "--data", f"text:{text}", "--data-split", "6000000,400000,177825", "--minutes", 5)
    trained = cli("train", "text8/multinomial", *words, "--out", "run", "--json")
    assert trained.code == 0, trained.err
    assert trained.json["seconds"] < 310
    scored = cli("evaluate", Path("run"), "--split", "val", "--json").json
    assert scored["bits_per_dim"] <= 3.2


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("preset", "most"), [("text8/argmax-ar", 2.6), ("text8/argmax-coupling", 3.8)])
def test_five_minutes_of_a_flow_on_the_text8_prefix(preset: str, most: float, cli: Cli) -> None:
    text = SHARED_DATA / "text8.prefix.xz"
    if not text.exists():
        pytest.skip(f"no {text}: the text8 prefix is not part of the project")
    words = ("--size", "tiny", "--data", f"text:{text}", "--data-split", "6000000,400000,177825", "--minutes", 5)
    trained = cli("train", preset, *words, "--out", "run", "--json")
    assert trained.code == 0, trained.err
    assert cli("evaluate", Path("run"), "--split", "val", "--json").json["bits_per_dim"] <= most


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_eight_gaussians_in_five_minutes(cli: Cli) -> None:
    assert cli("train", "toy/eight-gaussians", "--size", "tiny", "--minutes", 5, "--out", "run").code == 0
    elbo = cli("evaluate", "run", "--split", "exact", "--json").json
    iwbo = cli("evaluate", "run", "--split", "exact", "--bound", "iwbo", "--k", 1000, "--json").json
    assert elbo["nats_per_example"] <= 6.40
    assert iwbo["nats_per_example"] <= 6.36
