"""The loop: learning, clipping, accumulation, averaging, divergence, budgets."""

import itertools
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

import unordinal
from unordinal.config import OptimConfig, TrainConfig
from unordinal.data import Data, data_from_array
from unordinal.model import CategoricalModel
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.nets.transformer import TimeTransformer
from unordinal.numerics import draw_categorical
from unordinal.train.budget import Budget
from unordinal.train.checkpoint import latest_checkpoint, load_checkpoint
from unordinal.train.log import SilentReporter
from unordinal.train.loop import Loop, TrainingDivergedError, train
from unordinal.train.run import RunFolder


def pairs(num: int = 400) -> np.ndarray:
    """Sequences whose second half repeats the first."""
    x = np.random.default_rng(0).integers(0, 3, (num, 4))
    return np.concatenate([x, x], axis=1)


def small_model(data: Data, seed: int = 0) -> MultinomialDiffusion:
    torch.manual_seed(seed)
    net = TimeTransformer(data.spec.num_classes, width=32, num_blocks=1, global_heads=2)
    return MultinomialDiffusion(net, num_classes=3, event_shape=(8,), num_steps=20, times="stratified")


def loop_of(tmp_path: Path, config: TrainConfig, optim: OptimConfig | None = None) -> Loop:
    data = data_from_array(pairs())
    optim = optim or OptimConfig(optimizer="adamw")
    return Loop(small_model(data), data, config, optim, RunFolder(tmp_path), torch.device("cpu"))


CONFIG = TrainConfig(steps=300, batch_size=32, lr=3e-3)


def test_training_finds_the_structure(tmp_path: Path) -> None:
    data = data_from_array(pairs())
    folder = RunFolder(tmp_path / "run")
    model = small_model(data)
    result = train(model, data, CONFIG, OptimConfig(optimizer="muon", decay_to_zero=True), folder)
    assert result.step == 300
    assert math.log2(3) / 2 < result.best_bits < 1.2  # log2(3) / 2 = 0.79 is the entropy; log2(3) = 1.58 knows nothing
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [line["step"] for line in lines if "val_bits_per_dim" in line] == list(range(30, 301, 30))
    assert folder.weights.exists()
    assert (folder.plots / "loss.png").stat().st_size > 1000


class Histogram(CategoricalModel):
    """Independent positions with learned class probabilities: exact, and nothing random in its loss."""

    def __init__(self) -> None:
        super().__init__(3, (8,), is_exact=True)
        self.logits = nn.Parameter(torch.zeros(8, 3))

    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor) -> Tensor:
        return torch.log_softmax(self.logits, -1).expand(len(x), 8, 3).gather(-1, x.unsqueeze(-1)).sum((1, 2))

    def sample(self, num_samples: int, *, generator: torch.Generator | None = None, **settings: Any) -> Tensor:
        return draw_categorical(self.logits.expand(num_samples, 8, 3), generator)


def test_accumulation_is_the_same_step(tmp_path: Path) -> None:
    weights = []
    for accumulate in (1, 4):
        config = replace(CONFIG, accumulate=accumulate)
        data, optim = data_from_array(pairs()), OptimConfig(optimizer="adamax")
        loop = Loop(Histogram(), data, config, optim, RunFolder(tmp_path), torch.device("cpu"))
        for _ in range(5):
            loop.train_step()
        weights.append(loop.model.state_dict()["logits"])
    assert weights[0].abs().max() > 0
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="batch_size 32 must be a positive multiple of accumulate 5"):
        loop_of(tmp_path, replace(CONFIG, accumulate=5))


def test_clipping_bounds_the_gradient(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, CONFIG, OptimConfig(clip=0.01))
    norm = loop.train_step()["gradient_norm"]
    left = torch.cat([p.grad.flatten() for p in loop.model.parameters() if p.grad is not None]).norm()
    assert norm > 0.01
    assert float(left) == pytest.approx(0.01, rel=1e-3)


def test_averaged_weights_follow_the_recursion(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, CONFIG, OptimConfig(ema=0.9))
    name = "net.out.weight"
    expected: Tensor | None = None
    for step in range(120):
        loop.train_step()
        now = loop.model.state_dict()[name].double()
        decay = min(0.9, (1 + step) / (10 + step))
        expected = now if expected is None else decay * expected + (1 - decay) * now
    assert expected is not None
    torch.testing.assert_close(loop.ema.module.state_dict()[name].double(), expected, rtol=1e-4, atol=1e-6)


class Breaks(nn.Module):
    """A network whose output turns into NaN after some calls."""

    def __init__(self, calls: int):
        super().__init__()
        self.weight, self.left = nn.Parameter(torch.zeros(3)), calls

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        self.left -= 1
        return self.weight.expand(*z.shape, 3) * (math.nan if self.left < 0 else 1.0)


@pytest.mark.parametrize("every", [1, 5])
def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_state(every: int, tmp_path: Path) -> None:
    data = data_from_array(pairs())
    model = MultinomialDiffusion(Breaks(12), num_classes=3, event_shape=(8,), num_steps=20, times="stratified")
    folder = RunFolder(tmp_path / "run")
    config = replace(CONFIG, validate_every=100, checkpoint_every=every)
    with pytest.raises(TrainingDivergedError, match=r"no longer finite at step 12 .* starting at \[\d+") as caught:
        train(model, data, config, OptimConfig(), folder)
    kept = 11 if every == 1 else 10  # the weights of step 12 are those that gave no number
    assert f"the checkpoint of step {kept} is kept" in str(caught.value)
    checkpoint = latest_checkpoint(folder.checkpoints)
    assert checkpoint is not None
    assert load_checkpoint(checkpoint)["progressed"]["step"] == kept


def test_an_exploding_run_goes_on_from_good_weights_with_a_smaller_rate(tmp_path: Path) -> None:
    data, folder = data_from_array(pairs()), RunFolder(tmp_path / "run")
    config = replace(CONFIG, steps=40, checkpoint_every=1, validate_every=100)
    train(small_model(data), data, replace(config, steps=5), OptimConfig(), folder)
    with pytest.raises(TrainingDivergedError, match="no longer finite"):
        train(small_model(data), data, replace(config, lr=1e30), OptimConfig(), folder)
    result = train(small_model(data), data, config, OptimConfig(), folder)
    assert result.step == 40
    assert math.isfinite(result.best_bits)


def test_a_validation_that_uses_up_the_minutes_ends_the_run_in_order(tmp_path: Path) -> None:
    data, folder = (
        data_from_array({name: pairs(3000) for name in ("train", "val", "test")}),
        RunFolder(tmp_path / "run"),
    )
    config = replace(CONFIG, steps=None, minutes=0.02, batch_size=1, validate_examples=3000)
    train(small_model(data), data, config, OptimConfig(), folder)
    checkpoint = latest_checkpoint(folder.checkpoints)
    assert checkpoint is not None
    progressed = load_checkpoint(checkpoint)["progressed"]
    assert progressed["finished"]
    assert progressed["loss_count"] == 0
    assert train(small_model(data), data, config, OptimConfig(), folder).was_finished


def test_budgets() -> None:
    assert Budget.of(TrainConfig(epochs=2), 50.5).steps == 101
    assert Budget.of(TrainConfig(epochs=2, steps=7), 50).steps == 7
    timed = Budget.of(TrainConfig(minutes=2), 50)
    assert (timed.steps, timed.seconds) == (None, 120)
    assert timed.fraction(10**6, 30) == pytest.approx(0.25)
    assert timed.fraction(0, 110, reserved=10) == 1
    assert timed.wants_validation(1, 24, validated_at=12)
    assert not timed.wants_validation(1, 23.9, validated_at=12)
    for config, message in (
        (TrainConfig(steps=0), "--steps must be at least 1, got 0"),
        (TrainConfig(minutes=-1), "--minutes must be above 0, got -1"),
        (TrainConfig(minutes=math.nan), "--minutes must be above 0"),
        (TrainConfig(steps=1, minutes=1), "not both"),
        (TrainConfig(), "no budget"),
    ):
        with pytest.raises(ValueError, match=message):
            Budget.of(config, 10)


def test_minutes_end_in_time_and_the_learning_rate_at_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that moves by 20 ms a look, so that the machine's speed does not matter."""
    ticks = itertools.count()
    monkeypatch.setattr("unordinal.train.loop.time.monotonic", lambda: 0.02 * next(ticks))
    data = data_from_array(pairs())
    config = replace(CONFIG, steps=None, minutes=0.05)
    result = train(small_model(data), data, config, OptimConfig(decay_to_zero=True), RunFolder(tmp_path / "run"))
    assert result.seconds == pytest.approx(3.0, abs=0.1)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    rates = [line["lr"] for line in lines if "lr" in line]
    assert rates[0] > 0.8 * CONFIG.lr
    assert rates[-1] < 0.05 * CONFIG.lr
    assert len([line for line in lines if "val_bits_per_dim" in line]) == 10
    again = train(small_model(data), data, config, OptimConfig(decay_to_zero=True), RunFolder(tmp_path / "run"))
    assert again.was_finished


def test_an_interrupted_fit_saves_and_then_lets_the_signal_through(tmp_path: Path) -> None:
    class Interrupter(SilentReporter):
        def stepped(self, metrics: dict[str, Any], fraction: float) -> None:
            if metrics["step"] == 3:
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        unordinal.fit(
            small_model(data_from_array(pairs())), pairs(), out=tmp_path / "run", steps=9, reporter=Interrupter()
        )
    checkpoint = latest_checkpoint(tmp_path / "run" / "checkpoints")
    assert checkpoint is not None
    assert checkpoint.name == "step-00000003"


def test_a_model_of_ones_own_trains_and_loads(tmp_path: Path) -> None:
    data = data_from_array(pairs())
    run = unordinal.fit(small_model(data), pairs(), out=tmp_path / "run", steps=20, optimizer="adamw", lr=1e-3)
    again = unordinal.load(tmp_path / "run", model=small_model(data, seed=1))
    x = torch.from_numpy(pairs(8))
    torch.manual_seed(0)
    first = run.model.elbo(x)
    assert unordinal.score(run).num_examples == 20  # its own test split
    assert unordinal.score(run, pairs(30) % 2).num_examples == 30  # an array is scored whole, in the run's classes
    torch.manual_seed(0)
    torch.testing.assert_close(again.model.elbo(x), first)
    with pytest.raises(ValueError, match="made in Python; pass it"):
        unordinal.load(tmp_path / "run")


def test_fit_leaves_the_callers_random_numbers_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    unordinal.fit("text8/multinomial", pairs(), out=tmp_path / "run", steps=2, width=16, num_blocks=1, global_heads=1)
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(ValueError, match="unknown setting 'stps'"):
        unordinal.fit("text8/multinomial", pairs(), out=tmp_path / "other", stps=2)
