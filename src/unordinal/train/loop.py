"""One training run: its state, an optimiser step, a validation, a checkpoint. `running.py` runs it."""

import copy
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from unordinal.config import OptimConfig, TrainConfig
from unordinal.data.splits import Data
from unordinal.errors import RunError
from unordinal.model import CategoricalModel, given_labels
from unordinal.nets.places import PlaceHeads
from unordinal.parallel.group import ALONE, Group
from unordinal.parallel.randomness import EXAMPLES, FIRST_PART, INITIALISE, TIMES, generator_of, seed_step
from unordinal.parallel.sharding import (
    check_precision,
    check_strategy,
    free_gathered_weights,
    is_sharded,
    restored,
    restored_optimizer,
    shard,
    sync_after_last_part,
    whole,
)
from unordinal.runs.checkpoint import model_identity, save_checkpoint
from unordinal.runs.folder import RunFolder
from unordinal.train.average import Averaged
from unordinal.train.batches import Feeder, check_lengths
from unordinal.train.budget import Budget, parts_for_processes, parts_of_batch
from unordinal.train.optim import build_optimizer, clip_gradients, learning_rate_factor
from unordinal.train.recompute import recompute_blocks
from unordinal.train.validation import Validation, Validator

ROWS_COUNTED = 10_000  # for the frequencies at which the outputs of places start
CLEARLY_WORSE = 1.005  # times the best bits: less may go away when the learning rate falls


class TrainingDivergedError(RunError):
    """The loss or its gradient is no longer a number."""


@dataclass
class RunState:
    """What a run keeps from step to step besides weights; all of it is in every checkpoint."""

    step: int = 0
    seconds: float = 0.0  # training and validation
    train_seconds: float = 0.0  # training alone, for the speed
    validated_at: float = 0.0
    validation_seconds: float = 0.0  # of the last validation
    best_step: int = 0  # whose weights are published
    best_bits: float = math.inf
    best_rounds: list[list[float]] = field(default_factory=list)  # the draws of their validation
    loss_sum: float = 0.0  # since the last line of metrics
    loss_count: int = 0
    num_worse: int = 0  # validations in a row that were clearly worse than the best one
    finished: bool = False
    spent: list[float | None] = field(default_factory=lambda: [None, None])  # budget of a finished run: steps, seconds


class Loop:
    """The state and the steps of one run."""

    def __init__(
        self,
        model: CategoricalModel,
        data: Data,
        config: TrainConfig,
        optim: OptimConfig,
        folder: RunFolder,
        device: torch.device,
        group: Group = ALONE,
    ):
        check_lengths(config, model)
        data.require("train", "val")
        self.model, self.data, self.folder, self.device = model.to(device), data, folder, device
        self.config, self.optim, self.group = config, optim, group
        self.symbols_per_example = data.mean_symbols
        self.characters_per_symbol = data.mean_characters / data.mean_symbols
        self.symbols_per_step = config.batch_size * self.symbols_per_example
        self.num_parts = parts_for_processes(parts_of_batch(config, model, device.type), config, group.size)
        size = data.train.symbols.size if model.ends is False else len(data.train) * self.symbols_per_example
        self.steps_per_epoch = max(1.0, size / self.symbols_per_step)
        self.budget = Budget.of(config, self.steps_per_epoch)
        first, _ = data.train.crops(config.batch_size, generator_of(config.seed, 0, EXAMPLES))
        self.hooks = model.hooks
        check_precision(config, device)
        check_strategy(config, optim, self.hooks)
        seed_step(config.seed, 0, INITIALISE)
        self.hooks.initialise(first.to(device))
        if data.spec.num_places is not None:
            rows = data.train.examples(np.arange(min(len(data.train), ROWS_COUNTED)))
            for heads in (part for part in model.modules() if isinstance(part, PlaceHeads)):
                heads.start_at(rows.to(device))
        self.ema = Averaged(self.model, optim.ema)
        self.best: CategoricalModel | None = None
        if config.strategy == "fsdp" and group.size > 1:
            if config.keep == "best" and not model.is_exact:  # to compare with; a sharded model cannot be copied later
                self.best = copy.deepcopy(self.model)
            for sharded in {id(m): m for m in (self.model, self.averaged, self.best) if m is not None}.values():
                shard(sharded, device, group.size)
        if config.recompute:
            recompute_blocks(self.model)
        self.optimizer = build_optimizer(self.model, optim, config.lr)
        self.feeder = Feeder(data.train, config, model.classes, device, labels=model.labels)
        self.at = RunState()
        part, end = config.batch_size // self.num_parts, model.num_classes if model.ends else None
        self.validator = Validator(data.val, config.validate_examples, part, group, end)
        if config.compile:
            self.hooks.compile()

    def state(self) -> dict[str, Any]:
        return {
            "at": vars(self.at).copy(),
            "model": whole(self.model.state_dict()),
            "ema": self.ema.state_dict(),
            "optimizer": whole(self.optimizer.state_dict()),
            "hooks": self.hooks.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.at = RunState(**state["at"])
        self.model.load_state_dict(restored(state["model"], self.model.state_dict()))
        self.ema.load_state_dict(state["ema"])
        peaks = [group["peak_lr"] for group in self.optimizer.param_groups]  # a new learning rate is to hold
        self.optimizer.load_state_dict(restored_optimizer(state["optimizer"], self.optimizer))
        for group, peak in zip(self.optimizer.param_groups, peaks, strict=True):
            group["peak_lr"] = peak
        self.hooks.restore(state["hooks"])

    def save(self) -> None:
        """Write a checkpoint; every process calls this, since rank 0 may need the weights of the others."""
        if not (self.group.is_first or is_sharded(self.model)):
            return
        state = self.state()
        if self.group.is_first:
            save_checkpoint(self.folder.checkpoints, self.at.step, state, model_identity(state["model"]))

    @property
    def fraction(self) -> float:
        return self.budget.fraction(self.at.step, self.at.seconds, self.at.validation_seconds)

    def train_step(self) -> dict[str, Any]:
        """Take one optimiser step; raise before any weight has changed if the loss or a gradient is not a number."""
        config, model = self.config, self.model
        model.train()
        factor = learning_rate_factor(
            self.optim, step=self.at.step, fraction=self.fraction, epoch=self.at.step / self.steps_per_epoch
        )
        for group in self.optimizer.param_groups:
            group["lr"] = group["peak_lr"] * factor
        self.hooks.progressed(self.fraction)
        seed, step = config.seed, self.at.step
        x, cond, starts = self.feeder.take(step)
        seed_step(seed, step, TIMES)
        draw = self.hooks.draw(len(x))
        if model.ends:  # parts of a batch hold examples of similar lengths
            order = model.num_symbols(x).argsort(stable=True)
            x, starts = x[order.to(x.device)], [starts[row] for row in order.tolist()]
            cond = None if cond is None else cond[order.to(x.device)]
            draw = None if draw is None else draw[order]
        self.optimizer.zero_grad(set_to_none=True)
        losses = torch.zeros(0)
        each = (self.symbols_per_example if model.ends else x[0].numel()) * self.characters_per_symbol
        to_bits = 1 / (math.log(2) * each)  # what is minimised is in bits per dimension
        share = self.group.share_of(self.num_parts)
        for part in share:
            rows = slice(part * len(x) // self.num_parts, (part + 1) * len(x) // self.num_parts)
            seed_step(seed, step, FIRST_PART + part)
            sync_after_last_part(model, is_last=part == share[-1])
            with torch.autocast(self.device.type, torch.bfloat16, enabled=config.precision == "bf16"):
                labels = given_labels(None if cond is None else cond[rows])
                loss = model(model.trimmed(x[rows]), None if draw is None else draw[rows], **labels)
            (loss.sum() * to_bits / len(x)).backward()
            losses = losses if len(losses) else loss.new_zeros(len(x))
            losses[rows] = loss.detach()
        self.feeder.prefetch(step + 1)
        if is_sharded(model):
            losses = self.group.summed(losses)  # the gradients are summed already
        else:
            self.group.sum_gradients(model.parameters(), losses)
        norm = whole(clip_gradients(model.parameters(), self.optim.clip)).to(losses.device)
        *values, norm_value = torch.cat([losses, norm.reshape(1)]).tolist()  # the one wait for the device in a step
        loss = torch.tensor(values, dtype=torch.float64)
        mean = math.fsum(values) / len(values)
        if not (math.isfinite(mean) and math.isfinite(norm_value)):
            bad = [start for start, value in zip(starts, values, strict=True) if not math.isfinite(value)]
            named = f"the examples starting at {bad[:8]}" if bad else f"the gradient, batch starting at {starts[:8]}"
            raise TrainingDivergedError(
                f"the loss is no longer finite at step {self.at.step} "
                f"(loss {mean:g}, gradient norm {norm_value:g}) for {named}"
            )
        self.optimizer.step()
        self.hooks.observe(draw, loss)
        self.ema.update_parameters(model)
        self.at.step += 1
        bits = mean * to_bits
        self.at.loss_sum += bits
        self.at.loss_count += 1
        return {"loss": bits, "lr": self.optimizer.param_groups[0]["lr"], "gradient_norm": norm_value}

    @property
    def averaged(self) -> CategoricalModel:
        """The model with the weights that are validated and kept."""
        model = self.ema.module
        assert isinstance(model, CategoricalModel)
        return model

    def validate(self) -> dict[str, float]:
        """Return the bits per dimension of the averaged weights with their error; note whether they are the best."""
        at, model, validator = self.at, self.averaged, self.validator
        new = validator.add_round(model, Validation())
        if not math.isfinite(new.bits):
            raise TrainingDivergedError(f"the validation bound is no longer finite at step {at.step} ({new.bits:g})")
        is_best = True
        if at.best_rounds and self.config.keep == "best" and self.published_step != at.best_step:
            is_best = new.bits <= at.best_bits  # the best weights are gone: there are no more draws of them
        elif at.best_rounds and self.config.keep == "best":
            is_best, new, best = validator.is_better(model, new, Validation(at.best_rounds), self.published)
            at.best_rounds, at.best_bits = best.rounds, best.bits
        at.num_worse = at.num_worse + 1 if new.bits > CLEARLY_WORSE * at.best_bits else 0
        if is_best:
            at.best_bits, at.best_step, at.best_rounds = new.bits, at.step, new.rounds
        free_gathered_weights(model)
        return {"val_bits_per_dim": new.bits, "val_standard_error": validator.error(model, new) or 0.0}

    @property
    def published_step(self) -> int | None:
        """The step whose weights are published; rank 0 reads it."""
        return self.group.broadcast(self.folder.published_step if self.group.is_first else None)

    def published(self) -> CategoricalModel:
        """Return the model with the weights that are published now; rank 0 reads them."""
        state = self.group.broadcast_state(self.folder.read_weights() if self.group.is_first else None)
        assert state is not None
        model = self.best or copy.deepcopy(self.averaged)
        model.load_state_dict(restored(state, model.state_dict()))
        return model.to(self.device)
