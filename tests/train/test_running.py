"""A training run from start to end: what is validated, saved, published, resumed and reported."""

import json
import math
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unordinal.config import OptimConfig, TrainConfig
from unordinal.data import load_data
from unordinal.model import CategoricalModel
from unordinal.numerics import draw_categorical
from unordinal.runs.checkpoint import latest_checkpoint, load_checkpoint, step_of
from unordinal.runs.folder import RunFolder
from unordinal.train.log import SilentReporter
from unordinal.train.running import LOG_EVERY, train
from unordinal.train.validation import Validation, Validator

DATA = load_data(np.random.default_rng(0).choice(3, (300, 8), p=[0.7, 0.2, 0.1]))
CONFIG = TrainConfig(steps=40, batch_size=16, lr=0.05, validate_every=8, checkpoint_every=5)


class Histogram(CategoricalModel):
    """Independent positions with learned class probabilities: exact, and nothing random in its loss."""

    def __init__(self) -> None:
        super().__init__(3, (8,), is_exact=True)
        self.logits = nn.Parameter(torch.zeros(8, 3))

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        return torch.log_softmax(self.logits, -1).expand(len(x), 8, 3).gather(-1, x.unsqueeze(-1)).sum((1, 2))

    def sample(self, num_samples: int, *, generator: torch.Generator | None = None, **settings: Any) -> Tensor:
        return draw_categorical(self.logits.expand(num_samples, 8, 3), generator)


class Seen(SilentReporter):
    """Notes everything that is reported, and may stop the run at a step."""

    def __init__(self, stop_at: int | None = None, number: signal.Signals = signal.SIGINT):
        self.steps: list[int] = []
        self.validations: list[dict[str, Any]] = []
        self.began: tuple[int, float] | None = None
        self.stop_at, self.number = stop_at, number

    def started(self, step: int, fraction: float) -> None:
        self.began = (step, fraction)

    def stepped(self, metrics: dict[str, Any], fraction: float) -> None:
        self.steps.append(metrics["step"])
        if metrics["step"] == self.stop_at:
            signal.raise_signal(self.number)

    def validated(self, metrics: dict[str, Any]) -> None:
        self.validations.append(metrics)


def lines_of(folder: RunFolder) -> list[dict[str, Any]]:
    return [json.loads(line) for line in folder.metrics.read_text().splitlines()]


def test_a_run_reports_validates_saves_and_publishes(tmp_path: Path) -> None:
    folder, seen, model = RunFolder(tmp_path / "run"), Seen(), Histogram()
    result = train(model, DATA, CONFIG, OptimConfig(ema=0.0), folder, reporter=seen)
    assert result.model is model
    assert (result.step, result.interrupted_by, result.was_finished) == (40, None, False)
    assert seen.began == (0, 0.0)
    assert seen.steps == list(range(1, 41))
    assert [line["step"] for line in seen.validations] == [8, 16, 24, 32, 40]
    bits = [line["val_bits_per_dim"] for line in seen.validations]
    assert result.best_bits == min(bits)
    assert folder.published_step == result.best_step == seen.validations[int(np.argmin(bits))]["step"]
    assert folder.published_bits == pytest.approx(result.best_bits)
    losses = [line["step"] for line in lines_of(folder) if "loss" in line]
    assert losses == list(range(LOG_EVERY, 41, LOG_EVERY))
    newest = latest_checkpoint(folder.checkpoints)
    assert newest is not None
    state = load_checkpoint(newest)
    assert state["at"]["step"] == 40
    assert state["at"]["finished"]
    assert result.seconds > 0
    assert result.symbols_per_second > 0
    assert (folder.plots / "loss.png").exists()


def test_the_outcomes_model_has_the_last_weights_and_the_folder_the_best(tmp_path: Path) -> None:
    """With a learning rate that spoils what was learned, the two differ."""
    folder = RunFolder(tmp_path / "run")
    train(Histogram(), DATA, CONFIG, OptimConfig(ema=0.0), folder)
    worse = replace(CONFIG, steps=60, lr=50.0)
    result = train(Histogram(), DATA, worse, OptimConfig(ema=0.0), folder)
    assert result.step == 60
    assert result.best_step <= 40
    assert folder.published_step == result.best_step
    best = folder.read_weights()["logits"]
    assert not torch.equal(best, result.model.state_dict()["logits"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_saves_and_the_run_continues_bit_for_bit(number: signal.Signals, tmp_path: Path) -> None:
    whole = RunFolder(tmp_path / "whole")
    expected = train(Histogram(), DATA, CONFIG, OptimConfig(), whole)
    folder = RunFolder(tmp_path / "run")
    stopped = train(Histogram(), DATA, CONFIG, OptimConfig(), folder, reporter=Seen(13, number))
    assert (stopped.step, stopped.interrupted_by) == (13, number)
    newest = latest_checkpoint(folder.checkpoints)
    assert newest is not None
    assert step_of(newest) == 13
    again = Seen()
    result = train(Histogram(), DATA, CONFIG, OptimConfig(), folder, reporter=again)
    assert again.began is not None
    assert again.began[0] == 13
    assert again.steps == list(range(14, 41))
    assert torch.equal(result.model.state_dict()["logits"], expected.model.state_dict()["logits"])
    assert folder.read_weights()["logits"].tolist() == whole.read_weights()["logits"].tolist()
    steps = [line["step"] for line in lines_of(folder)]
    assert steps == [line["step"] for line in lines_of(whole)]
    assert result.best_bits == expected.best_bits


def test_a_run_that_stops_before_its_first_validation_has_weights(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    stopped = train(Histogram(), DATA, CONFIG, OptimConfig(), folder, reporter=Seen(2))
    assert stopped.best_step == 0
    assert stopped.best_bits == math.inf
    assert folder.published_step == 2
    assert folder.published_bits is None


def test_a_finished_run_has_nothing_left_to_do_and_a_larger_budget_continues_it(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    train(Histogram(), DATA, CONFIG, OptimConfig(), folder)
    before = folder.weights.read_bytes()
    again = train(Histogram(), DATA, CONFIG, OptimConfig(), folder)
    assert again.was_finished
    assert again.step == 40
    assert folder.weights.read_bytes() == before
    longer = train(Histogram(), DATA, replace(CONFIG, steps=48), OptimConfig(), folder)
    assert (longer.step, longer.was_finished) == (48, False)


def test_the_first_budget_that_is_spent_ends_the_run(tmp_path: Path) -> None:
    config = replace(CONFIG, minutes=10.0)
    result = train(Histogram(), DATA, config, OptimConfig(), RunFolder(tmp_path / "steps"))
    assert result.step == 40
    short = replace(CONFIG, steps=10**9, minutes=0.005, validate_every=None)
    result = train(Histogram(), DATA, short, OptimConfig(), RunFolder(tmp_path / "minutes"))
    assert 0 < result.step < 10**6
    assert result.seconds < 5
    assert train(Histogram(), DATA, short, OptimConfig(), RunFolder(tmp_path / "minutes")).was_finished


def test_missing_or_damaged_weights_are_published_again(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    train(Histogram(), DATA, CONFIG, OptimConfig(), folder)
    for damage in (b"", folder.weights.read_bytes()[:50]):
        folder.weights.write_bytes(damage)
        assert train(Histogram(), DATA, CONFIG, OptimConfig(), folder).was_finished
        assert folder.read_weights()["logits"].shape == (8, 3)
    folder.weights.unlink()
    train(Histogram(), DATA, CONFIG, OptimConfig(), folder)
    assert folder.weights.exists()


def test_patience_ends_a_run_that_gets_worse(tmp_path: Path) -> None:
    spoilt = replace(CONFIG, steps=400, lr=50.0, patience=3)
    result = train(Histogram(), DATA, spoilt, OptimConfig(ema=0.0), RunFolder(tmp_path / "patient"))
    assert result.step == result.best_step + 3 * 8
    assert result.step < 400
    again = train(Histogram(), DATA, spoilt, OptimConfig(ema=0.0), RunFolder(tmp_path / "patient"))
    assert again.was_finished


def test_a_validation_slightly_worse_than_the_best_uses_no_patience(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bits = iter([1.0, 1.002, 1.004, 1.003, 1.004, 1.01, 1.01, 1.004, 1.01, 1.01, 1.01, 0.5])
    monkeypatch.setattr(
        Validator, "add_round", lambda self, model, validation: Validation([[next(bits)] * len(self.chosen)])
    )
    config = replace(CONFIG, steps=400, patience=3)
    result = train(Histogram(), DATA, config, OptimConfig(), RunFolder(tmp_path / "level"))
    assert result.step == 11 * 8
