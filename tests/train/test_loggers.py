"""Loggers receive every step and validation of a run, and end whatever happens."""

import math
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unordinal
from unordinal.train.log import read_lines

X = np.random.default_rng(0).integers(0, 3, (80, 6))
SMALL: dict[str, Any] = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1, "progress": False}


class Notebook:
    """Writes down what it is told; raises a signal at a step."""

    def __init__(self, stop_at: int | None = None):
        self.stop_at = stop_at
        self.told: list[Any] = []

    def started(self, folder: Path, settings: dict[str, Any], step: int) -> None:
        self.told.append(("started", folder.name, settings["train"]["steps"], step))

    def logged(self, step: int, values: dict[str, float]) -> None:
        self.told.append((step, values))
        if step == self.stop_at and "loss" in values:
            signal.raise_signal(signal.SIGINT)

    def ended(self) -> None:
        self.told.append("ended")


def test_a_logger_receives_every_step_and_validation(tmp_path: Path) -> None:
    notes = Notebook()
    unordinal.fit("arm", X, steps=12, out=tmp_path / "run", logger=notes, validate_every=6, **SMALL)
    assert notes.told[0] == ("started", "run", 12, 0)
    assert notes.told[-1] == "ended"
    steps = [(step, values) for step, values in notes.told[1:-1] if "loss" in values]
    validations = [(step, values) for step, values in notes.told[1:-1] if "val_bits_per_dim" in values]
    assert [step for step, _ in steps] == list(range(1, 13))
    assert all(math.isfinite(values["lr"]) and values["gradient_norm"] > 0 for _, values in steps)
    lines = read_lines(tmp_path / "run" / "metrics.jsonl")
    written = [(line["step"], line["val_bits_per_dim"]) for line in lines if "val_bits_per_dim" in line]
    assert [(step, values["val_bits_per_dim"]) for step, values in validations] == written
    mean = sum(values["loss"] for _, values in steps[:10]) / 10
    assert math.isclose(next(line["loss"] for line in lines if line["step"] == 10), mean)


def test_a_logger_ends_when_a_run_is_interrupted_and_starts_where_it_continues(tmp_path: Path) -> None:
    first, second, third = Notebook(stop_at=4), Notebook(), Notebook()
    with pytest.raises(KeyboardInterrupt):
        unordinal.fit("arm", X, steps=9, out=tmp_path / "run", logger=first, **SMALL)
    assert first.told[-1] == "ended"
    unordinal.fit("arm", X, steps=9, out=tmp_path / "run", resume=True, logger=second, **SMALL)
    assert second.told[0] == ("started", "run", 9, 4)
    assert second.told[1][0] == 5
    unordinal.fit("arm", X, steps=9, out=tmp_path / "run", resume=True, logger=third, **SMALL)
    assert third.told == []  # nothing was left to do


def test_tensorboard_reads_what_was_logged(tmp_path: Path) -> None:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    for steps in (4, 6):  # the second run continues the first one
        logger = unordinal.TensorBoardLogger()
        unordinal.fit("arm", X, steps=steps, out=tmp_path / "run", resume=True, logger=logger, **SMALL)
    found = accumulators.EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert {"training/loss", "training/lr", "validation/bits_per_dim"} <= set(found.Tags()["scalars"])
    assert [event.step for event in found.Scalars("training/loss")] == [1, 2, 3, 4, 5, 6]
    lines = [line for line in read_lines(tmp_path / "run" / "metrics.jsonl") if "val_bits_per_dim" in line]
    logged = {event.step: event.value for event in found.Scalars("validation/bits_per_dim")}
    assert logged == pytest.approx({line["step"]: line["val_bits_per_dim"] for line in lines})
    assert '"steps": 6' in found.Tensors("settings/text_summary")[-1].tensor_proto.string_val[0].decode()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    with pytest.raises(ValueError, match=r"pip install 'unordinal\[tensorboard\]'"):
        unordinal.TensorBoardLogger()
