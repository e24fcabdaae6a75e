"""The loop: learning, clipping, accumulation, divergence, budgets of minutes, and going on bit for bit."""

import copy
import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unordinal.config import ModelSettings, OptimConfig, TrainConfig
from unordinal.data import Data, load_data
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.evaluate.likelihood import Evaluate, score_split
from unordinal.model import CategoricalModel
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.diffusion import Diffusion
from unordinal.nets.settings import LSTM, DiffusionTransformer, Transformer
from unordinal.nets.transformer import TimeTransformer
from unordinal.numerics import draw_categorical
from unordinal.recipes.argmax_flow import ArgmaxFlowSettings
from unordinal.recipes.arm import ArmSettings
from unordinal.recipes.diffusion import MultinomialSettings
from unordinal.recipes.discrete_flow import DiscreteFlowSettings
from unordinal.recipes.latent_flow import LatentFlowSettings
from unordinal.recipes.settings import Mixture, SequenceInverse
from unordinal.runs.checkpoint import latest_checkpoint, load_checkpoint
from unordinal.runs.folder import RunFolder
from unordinal.surjections.argmax import GumbelArgmax
from unordinal.train.loop import Loop, TrainingDivergedError
from unordinal.train.running import train


def pairs(num: int = 400) -> np.ndarray:
    """Sequences whose second half repeats the first."""
    x = np.random.default_rng(0).integers(0, 3, (num, 4))
    return np.concatenate([x, x], axis=1)


def small_model(data: Data, seed: int = 0) -> Diffusion:
    torch.manual_seed(seed)
    net = TimeTransformer(data.spec.num_classes, width=32, num_blocks=1, global_heads=2)
    return Diffusion(net, noise=UniformNoise(3, cosine_schedule(20)), event_shape=(8,), times="stratified")


def loop_of(tmp_path: Path, config: TrainConfig, optim: OptimConfig | None = None) -> Loop:
    data = load_data(pairs())
    optim = optim or OptimConfig(optimizer="adamw")
    return Loop(small_model(data), data, config, optim, RunFolder(tmp_path), torch.device("cpu"))


CONFIG = TrainConfig(steps=300, batch_size=32, lr=3e-3)


def test_training_finds_the_structure(tmp_path: Path) -> None:
    data = load_data(pairs())
    folder = RunFolder(tmp_path / "run")
    model = small_model(data)
    config = replace(CONFIG, steps=600)
    result = train(model, data, config, OptimConfig(optimizer="muon", decay_to_zero=True), folder)
    assert result.step == 600
    folder.load_weights(model)
    bits = score_split(model, data.val, Evaluate(repeats=100)).bits_per_dim
    assert math.log2(3) / 2 < bits < 1.2  # log2(3) / 2 = 0.79 is the entropy; log2(3) = 1.58 knows nothing
    assert abs(result.best_bits - bits) < 0.5  # a validation is the same with fewer draws
    lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
    assert [line["step"] for line in lines if "val_bits_per_dim" in line] == list(range(60, 601, 60))
    assert folder.weights.exists()
    assert (folder.plots / "loss.png").stat().st_size > 1000


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


def test_accumulation_is_the_same_step(tmp_path: Path) -> None:
    weights = []
    for accumulate in (1, 4):
        config = replace(CONFIG, accumulate=accumulate)
        data, optim = load_data(pairs()), OptimConfig(optimizer="adamax")
        loop = Loop(Histogram(), data, config, optim, RunFolder(tmp_path), torch.device("cpu"))
        for _ in range(5):
            loop.train_step()
        weights.append(loop.model.state_dict()["logits"])
    assert weights[0].abs().max() > 0
    torch.testing.assert_close(weights[0], weights[1], rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="`batch_size` 32 must be a positive multiple of `accumulate` 5"):
        loop_of(tmp_path, replace(CONFIG, accumulate=5))


def test_clipping_bounds_the_gradient(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, CONFIG, OptimConfig(clip=0.01))
    norm = loop.train_step()["gradient_norm"]
    left = torch.cat([p.grad.flatten() for p in loop.model.parameters() if p.grad is not None]).norm()
    assert norm > 0.01
    assert float(left) == pytest.approx(0.01, rel=1e-3)


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
    data = load_data(pairs())
    model = Diffusion(Breaks(12), noise=UniformNoise(3, cosine_schedule(20)), event_shape=(8,), times="stratified")
    folder = RunFolder(tmp_path / "run")
    config = replace(CONFIG, validate_every=100, checkpoint_every=every)
    with pytest.raises(TrainingDivergedError, match=r"no longer finite at step 12 .* starting at \[\d+") as caught:
        train(model, data, config, OptimConfig(), folder)
    kept = 11 if every == 1 else 10  # the weights of step 12 are those that gave no number
    assert f"the checkpoint of step {kept} is kept" in str(caught.value)
    checkpoint = latest_checkpoint(folder.checkpoints)
    assert checkpoint is not None
    assert load_checkpoint(checkpoint)["at"]["step"] == kept


def test_an_exploding_run_goes_on_from_good_weights_with_a_smaller_rate(tmp_path: Path) -> None:
    data, folder = load_data(pairs()), RunFolder(tmp_path / "run")
    config = replace(CONFIG, steps=40, checkpoint_every=1, validate_every=100)
    train(small_model(data), data, replace(config, steps=5), OptimConfig(), folder)
    with pytest.raises(TrainingDivergedError, match="no longer finite"):
        train(small_model(data), data, replace(config, lr=1e30), OptimConfig(), folder)
    result = train(small_model(data), data, config, OptimConfig(), folder)
    assert result.step == 40
    assert math.isfinite(result.best_bits)


def test_a_validation_that_uses_up_the_minutes_ends_the_run_in_order(tmp_path: Path) -> None:
    data, folder = (load_data({name: pairs(3000) for name in ("train", "val", "test")}), RunFolder(tmp_path / "run"))
    config = replace(CONFIG, steps=None, minutes=0.02, batch_size=1, validate_examples=3000)
    train(small_model(data), data, config, OptimConfig(), folder)
    checkpoint = latest_checkpoint(folder.checkpoints)
    assert checkpoint is not None
    progressed = load_checkpoint(checkpoint)["at"]
    assert progressed["finished"]
    assert progressed["loss_count"] == 0
    assert train(small_model(data), data, config, OptimConfig(), folder).was_finished


def test_minutes_end_in_time_and_the_learning_rate_at_zero(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that moves by 20 ms a look, so that the machine's speed does not matter."""
    ticks = itertools.count()
    monkeypatch.setattr("unordinal.train.running.time.monotonic", lambda: 0.02 * next(ticks))
    data = load_data(pairs())
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


SKEWED = load_data(np.random.default_rng(0).choice(3, (200, 6), p=[0.7, 0.2, 0.1]), places=False)
FLOW = ArgmaxFlowSettings(Mixture(LSTM(8, 1), 2, 4), SequenceInverse(4), surjection="gumbel-threshold")
LATENT: Any = {"latent_channels": 2, "num_flows": 1, "channel_width": 2}
SCHEDULED: dict[
    str, ModelSettings
] = {  # whose losses change with the budget, which start from data or learn from losses
    "argmax flow": FLOW,
    "auxiliary losses": ArmSettings(Transformer(4, num_blocks=2, num_heads=1, dropout=0.5), auxiliary=True),
    "segments": ArmSettings(Transformer(4, num_blocks=1, num_heads=1), num_segments=2),
    "latent af-af": LatentFlowSettings(LSTM(4, 1, dropout=0.5), flow="af-af", **LATENT),
    "latent iaf-scf": LatentFlowSettings(LSTM(4, 1, dropout=0.5), flow="iaf-scf", **LATENT),
    "discrete flow": DiscreteFlowSettings(Transformer(4, num_blocks=1, num_heads=1)),
    "times by importance": MultinomialSettings(DiffusionTransformer(8, 1, global_heads=1, local_heads=0), num_steps=2),
}


def loop_with(settings: ModelSettings, tmp_path: Path, optim: OptimConfig, seed: int = 0) -> Loop:
    torch.manual_seed(seed)
    model = settings.build(SKEWED.spec)
    config = TrainConfig(steps=6, batch_size=8, lr=1e-2)
    return Loop(model, SKEWED, config, optim, RunFolder(tmp_path), torch.device("cpu"))


@pytest.mark.parametrize("name", SCHEDULED)
@pytest.mark.parametrize("ema", [0.9, 0.0])
def test_a_model_goes_on_bit_for_bit(name: str, ema: float, tmp_path: Path) -> None:
    optim, config = OptimConfig(ema=ema), SCHEDULED[name]
    whole = loop_with(config, tmp_path, optim)
    for _ in range(3):
        whole.train_step()
    state = copy.deepcopy(whole.state())
    expected = [whole.train_step()["loss"] for _ in range(3)]
    again = loop_with(config, tmp_path, optim, seed=99)
    again.restore(state)
    assert [again.train_step()["loss"] for _ in range(3)] == expected
    for module, other in ((whole.model, again.model), (whole.ema.module, again.ema.module)):
        for (key, value), (_, restored) in zip(module.state_dict().items(), other.state_dict().items(), strict=True):
            assert torch.equal(value, restored), key
    learned, restored_too = whole.hooks.state(), again.hooks.state()
    assert learned.keys() == restored_too.keys()
    assert all(torch.equal(value, restored_too[key]) for key, value in learned.items())


def test_what_starts_from_data_has_started_in_the_average_too(tmp_path: Path) -> None:
    loop = loop_with(FLOW, tmp_path, OptimConfig())
    for module in (loop.model, loop.ema.module):
        assert isinstance(module, ArgmaxFlow)
        started = [value for name, value in module.state_dict().items() if name.endswith("is_started")]
        assert len(started) == 2  # ActNorm and the Gumbel locations
        assert all(bool(value) for value in started)
        surjection = module.surjection
        assert isinstance(surjection, GumbelArgmax)
        assert float(torch.softmax(surjection.offset.detach(), 0)[0]) > 0.5


@pytest.mark.parametrize("times", ["stratified", "importance"])
def test_validating_more_often_changes_no_loss(times: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but a training step moves the stream of random numbers that training draws from."""
    monkeypatch.setattr("unordinal.train.running.LOG_EVERY", 1)
    data, losses = load_data(pairs()), []
    for every in (1, 3, 12):
        folder = RunFolder(tmp_path / f"every-{every}")
        torch.manual_seed(0)
        net = TimeTransformer(3, width=8, num_blocks=1, global_heads=1)
        model = Diffusion(net, noise=UniformNoise(3, cosine_schedule(5)), event_shape=(8,), times=times)
        torch.manual_seed(1)
        train(model, data, replace(CONFIG, steps=12, batch_size=8, validate_every=every), OptimConfig(), folder)
        lines = [json.loads(line) for line in folder.metrics.read_text().splitlines()]
        losses.append([line["loss"] for line in lines if "loss" in line])
    assert len(losses[0]) == 12
    assert losses[0] == losses[1] == losses[2]


def test_weights_that_are_not_those_of_the_best_validation_are_never_compared(tmp_path: Path) -> None:
    """After a step back the published weights may be of another step: then only the numbers at hand decide."""
    loop = loop_of(tmp_path, replace(CONFIG, steps=10, batch_size=8))
    loop.train_step()
    loop.validate()
    for best_bits, expected in ((math.inf, 2), (-math.inf, 1)):
        loop.at.best_step, loop.at.best_bits = 1, best_bits  # of step 1, of which nothing is published
        loop.at.step = 2
        loop.validate()
        assert loop.at.best_step == expected
