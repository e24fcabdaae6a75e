"""`unordinal bench sampling`: the table of sampling times."""

from typing import Any

import pytest
from conftest import Cli, refused

from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import ClassTransformer


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
    refused(cli("bench", "sampling", "--presets"), "--presets needs a value")
    refused(cli("bench", "sampling", "--presets", "text8/multinomial", "text8/amr", "--size", "tiny"), "text8/arm")
    refused(cli("bench", "training"), "unknown benchmark 'training' (known: sampling)")
    refused(cli("bench", "sampling", "--presets", "text8/multinomial", "--size", "tiny", "--steps", 2000), "1000")
    refused(cli("bench", "sampling", "--repeats", 0), "--repeats must be a whole number of at least 1, got 0")
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
    monkeypatch.setattr("unordinal.recipes.arm.ArmSettings.build", lambda *_: made_small())
    assert "35.5 (of 288 characters)" in cli("bench", "sampling", "--presets", "text8/arm", "--repeats", 1).out


def made_small() -> AutoregressiveModel:
    return AutoregressiveModel(ClassTransformer(27, width=4, num_blocks=1, num_heads=1), event_shape=(256,))
