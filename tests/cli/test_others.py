"""Autoregressive models on the command line: prompts, temperature, scoring in order; the table of sampling times."""

from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Result, small_flags

from unordinal import load
from unordinal.cli import run as run_cli
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import ClassTransformer, SegmentTransformer


@pytest.fixture(scope="session")
def arms(book: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An autoregressive Transformer and a Transformer-XL after a few steps."""
    folder = tmp_path_factory.mktemp("arms")
    for kind in ("arm", "arm-xl"):
        words = ["train", f"text8/{kind}", "--data", f"text:{book}", *small_flags(f"text8/{kind}"), "--steps", "5"]
        assert run_cli([*words, "--out", str(folder / kind)]) == 0
    return {kind: folder / kind for kind in ("arm", "arm-xl")}


def refused(result: Result, *parts: str) -> None:
    assert result.code == 2, (result.out, result.err)
    for part in parts:
        assert part in result.complaint


def test_samples_begin_with_the_prompt(cli: Cli, arms: dict[str, Path]) -> None:
    result = cli(
        "sample", arms["arm"], "--num", 3, "--prompt", "the fox", "--temperature", 0.7, "--length", 20, "--json"
    )
    assert result.code == 0, result.err
    assert all(text.startswith("the fox") and len(text) == 20 for text in result.json["samples"])
    cold = cli("sample", arms["arm"], "--num", 2, "--temperature", 0, "--json").json["samples"]
    assert cold[0] == cold[1]


def test_what_only_autoregressive_models_have(
    cli: Cli, arms: dict[str, Path], trained: Path, trained_flow: Path
) -> None:
    for run in (trained, trained_flow):
        refused(cli("sample", run, "--prompt", "a"), "--prompt is for autoregressive models")
        refused(cli("sample", run, "--temperature", 0.5), "--temperature is for autoregressive models")
    refused(cli("sample", arms["arm"], "--prompt", "Ähm"), "expected a-z and space")
    refused(cli("sample", arms["arm"], "--temperature", -1), "at least 0, got -1")
    refused(cli("evaluate", trained, "--in-order"), "only a text under a model with a memory")
    refused(cli("sample", arms["arm"], "--prompt", "x" * 99), "the prompt has 99 symbols, more than the 16")
    refused(cli("sample", arms["arm"], "--steps", 3), "--steps is for diffusion")


def test_scoring_in_order_is_reported_apart(cli: Cli, arms: dict[str, Path]) -> None:
    apart = cli("evaluate", arms["arm-xl"], "--num-examples", 8, "--json")
    order = cli("evaluate", arms["arm-xl"], "--num-examples", 8, "--in-order", "--json")
    assert apart.json["kind"] == order.json["kind"] == "exact"
    assert "in order" in order.json["method"]
    assert "in order" not in apart.json["method"]
    refused(cli("evaluate", arms["arm"], "--in-order"), "only a network with a memory")
    refused(cli("evaluate", arms["arm"], "--bound", "iwbo", "--k", 3), "this model's likelihood is exact")
    refused(cli("evaluate", arms["arm"], "--repeats", 3), "this model's likelihood is exact")
    refused(cli("evaluate", arms["arm-xl"], "--in-order", "--bound", "iwbo", "--k", 2), "--in-order is for exact")


def test_the_time_table(cli: Cli) -> None:
    words = ("bench", "sampling", "--presets", "text8/arm", "text8/multinomial", "text8/discrete-flow")
    result = cli(*words, "--size", "tiny", "--lengths", 8, "--repeats", 2, "--steps", 3, "--json")
    assert result.code == 0, result.err
    rows = result.json["sampling"]
    assert [(row["preset"], row["variant"]) for row in rows] == [
        ("text8/arm", ""),
        ("text8/multinomial", "1000 steps"),
        ("text8/multinomial", "3 steps"),
        ("text8/discrete-flow", "autoregressive"),
        ("text8/discrete-flow", "bipartite"),
    ]
    assert all(row["median"] > 0 and row["repeats"] == 2 for row in rows)
    assert all(row["paper"] is None for row in rows)  # the paper's seconds are for its size and 256 characters
    shown = cli("bench", "sampling", "--presets", "text8/arm", "--size", "tiny", "--lengths", 4, "--repeats", 1)
    assert "text8/arm" in shown.out
    assert "±" not in shown.out  # one draw has no deviation
    refused(cli("bench", "sampling", "--presets"), "at least one preset")
    refused(cli("bench", "sampling", "--presets", "text8/multinomial", "text8/amr", "--size", "tiny"), "text8/arm")
    refused(cli("bench", "training"), "unknown benchmark 'training'; known: sampling")
    refused(cli("bench", "sampling", "--presets", "text8/multinomial", "--size", "tiny", "--steps", 2000), "1000")
    refused(cli("bench", "sampling", "--repeats", 0), "--repeats must be at least 1, got 0")
    refused(cli("bench", "sampling", "--presets", "cityscapes/vae", "--size", "tiny"), "sampling is timed for texts")


def test_the_time_table_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    draws = 0
    sample = AutoregressiveModel.sample

    def interrupted(self: AutoregressiveModel, *args: Any, **settings: Any) -> Any:
        nonlocal draws
        draws += 1
        if draws == 3:  # after the warming up and one draw that counts
            raise KeyboardInterrupt
        return sample(self, *args, **settings)

    monkeypatch.setattr(AutoregressiveModel, "sample", interrupted)
    words = ("bench", "sampling", "--presets", "text8/arm", "--size", "tiny", "--lengths", 4, "--repeats", 5, "--json")
    result = cli(*words)
    assert result.code == 130
    assert result.json["interrupted"]
    assert [row["repeats"] for row in result.json["sampling"]] == [1]


def test_the_papers_seconds_stand_beside_its_size(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    monkeypatch.setattr(AutoregressiveModel, "sample", lambda *_, **__: None)
    monkeypatch.setattr("unordinal.evaluate.timing.build_model", lambda *_: made_small())
    assert "35.5 (of 288)" in cli("bench", "sampling", "--presets", "text8/arm", "--repeats", 1).out


def made_small() -> AutoregressiveModel:
    return AutoregressiveModel(ClassTransformer(27, width=4, num_blocks=1, num_heads=1), event_shape=(256,))


def test_segments_follow_the_length_asked_for(cli: Cli, book: Path, tmp_path: Path) -> None:
    words = ["--data", f"text:{book}", *small_flags("text8/arm-xl"), "--length", "24", "--steps", "1"]
    assert cli("train", "text8/arm-xl", *words, "--out", tmp_path / "xl").code == 0
    run = load(tmp_path / "xl")
    assert isinstance(run.model, AutoregressiveModel)
    assert isinstance(run.model.net, SegmentTransformer)
    assert (run.model.net.segment, run.model.net.memory) == (6, 18)
