"""Run a training loop: never lose work, and continue bit for bit where it stopped."""

import math
import time
from dataclasses import dataclass
from signal import Signals
from typing import Any

import torch

from unordinal.config import OptimConfig, TrainConfig
from unordinal.data.splits import Data
from unordinal.model import CategoricalModel
from unordinal.parallel.group import ALONE, Group
from unordinal.parallel.sharding import whole
from unordinal.runs.checkpoint import drop_checkpoint, load_newest, model_identity, step_of
from unordinal.runs.folder import RunFolder
from unordinal.train.interrupt import Interrupts
from unordinal.train.log import MetricsFile, Reporter, SilentReporter, plot_loss, read_lines
from unordinal.train.loop import Loop, TrainingDivergedError

LOG_EVERY = 10  # steps
CHECKPOINT_SECONDS = 300.0
TALK_SECONDS = 3.0


@dataclass(frozen=True)
class Outcome:
    """How a call to `train` ended."""

    model: CategoricalModel  # with the weights of the last step
    step: int
    seconds: float
    symbols_per_second: float
    best_bits: float
    best_step: int
    interrupted_by: Signals | None = None  # what interrupted it
    was_finished: bool = False  # there was nothing left to do


def train(
    model: CategoricalModel,
    data: Data,
    config: TrainConfig,
    optim: OptimConfig,
    folder: RunFolder,
    *,
    device: torch.device | str = "cpu",
    reporter: Reporter | None = None,
    group: Group = ALONE,
) -> Outcome:
    """Train until the budget is spent or a signal comes, from the folder's last checkpoint if there is one."""
    reporter = reporter if reporter and group.is_first else SilentReporter()
    loop = Loop(model, data, config, optim, folder, torch.device(device), group)
    found = None
    if group.is_first:
        found = load_newest(folder.checkpoints, model_identity(model.state_dict()), reporter.warned)
    state = group.broadcast_state(found)
    if state is not None:
        loop.restore(state)
        # a crash may have come between the checkpoint and the publication, or the file may have been damaged since
        published = loop.published_step
        if published is None and 0 < loop.at.best_step < loop.at.step:  # the best weights are gone: take these
            loop.at.best_bits, loop.at.best_rounds = math.inf, []
            loop.validate()
        if published is None or (loop.at.best_step == loop.at.step and published != loop.at.step):
            publish(loop)
        if loop.at.finished and not loop.budget.is_more_than(loop.at.spent):
            return outcome(loop, was_finished=True)
        loop.at.finished = False
    metrics = MetricsFile(folder.metrics, loop.at.step) if group.is_first else None
    reporter.started(loop.at.step, loop.fraction)
    with Interrupts() as interrupts:
        try:
            run_steps(loop, metrics, reporter, interrupts)
        except TrainingDivergedError as error:
            if not group.is_first:
                time.sleep(TALK_SECONDS)  # let rank 0 report first: torchrun kills the group when any rank exits
                raise
            kept = drop_checkpoint(folder.checkpoints, loop.at.step)
            left = f"the checkpoint of step {step_of(kept)} is kept" if kept else "there is no earlier checkpoint"
            raise TrainingDivergedError(f"{error}; {left}; continue with `resume` and a smaller `lr`") from error
        finally:
            if metrics is not None:
                metrics.close()
        if group.broadcast(
            not folder.weights.exists() if group.is_first else None
        ):  # stopped before the first validation
            publish(loop)
    if group.is_first:
        plot_loss(read_lines(folder.metrics), folder.plots / "loss.png")
    return outcome(loop, interrupted_by=None if loop.at.finished else interrupts.received)


def run_steps(loop: Loop, metrics: MetricsFile | None, reporter: Reporter, interrupts: Interrupts) -> None:
    """Take steps, validate and write checkpoints until the budget is spent or a signal comes."""
    at, group = loop.at, loop.group
    saved_at, clock = at.seconds, time.monotonic()
    while not at.finished:
        line = loop.train_step()
        now = time.monotonic()
        at.seconds += now - clock
        at.train_seconds += now - clock
        clock = now
        at.seconds, at.train_seconds = group.broadcast(
            [at.seconds, at.train_seconds]
        )  # so that all agree on the budget
        speed = at.step * loop.symbols_per_step / at.train_seconds
        reporter.stepped({"step": at.step, "seconds": at.seconds, "symbols_per_second": speed, **line}, loop.fraction)
        validates = loop.fraction >= 1 or loop.budget.wants_validation(at.step, at.seconds, at.validated_at)
        validation = loop.validate() if validates else {}
        if validates:
            now = time.monotonic()
            at.validation_seconds, clock = now - clock, now
            at.validation_seconds = group.broadcast(at.validation_seconds)
            at.seconds += at.validation_seconds
            at.validated_at = at.seconds
        # A slow validation may have used up the rest.
        at.finished = loop.fraction >= 1 or at.num_worse >= (loop.config.patience or math.inf)
        at.spent = [loop.budget.steps, loop.budget.seconds]
        if at.step % LOG_EVERY == 0 or at.finished:
            line["loss"] = at.loss_sum / at.loss_count
            at.loss_sum, at.loss_count = 0.0, 0
            if metrics is not None:
                metrics.write(
                    {"step": at.step, "seconds": round(at.seconds, 3), "symbols_per_second": round(speed, 1), **line}
                )
        if validates:
            line = {"step": at.step, "seconds": round(at.seconds, 3), **validation, "best_step": at.best_step}
            if metrics is not None:
                metrics.write(line)
            reporter.validated(line)
        # Any process may have received a signal to stop. A signal from now on counts in the next step, for all.
        signal = group.largest(int(interrupts.received or 0))
        interrupts.received = Signals(signal) if signal else interrupts.received
        due = at.step % loop.config.checkpoint_every == 0 or at.seconds - saved_at >= CHECKPOINT_SECONDS
        if validates or due or signal:
            loop.save()
            saved_at = at.seconds
        if validates and at.best_step == at.step:
            publish(loop)
        if signal:
            return


def publish(loop: Loop) -> None:
    """Write the averaged weights to the run's model.safetensors."""
    weights = whole(loop.averaged.state_dict())
    if not loop.group.is_first:
        return
    notes: dict[str, Any] = {"step": loop.at.step, "weights": "ema" if loop.optim.ema else "last"}
    if loop.at.best_step == loop.at.step:
        notes["val_bits_per_dim"] = loop.at.best_bits
    loop.folder.publish(weights, notes)


def outcome(loop: Loop, *, interrupted_by: Signals | None = None, was_finished: bool = False) -> Outcome:
    at = loop.at
    speed = at.step * loop.symbols_per_step / at.train_seconds if at.train_seconds else 0.0
    return Outcome(loop.model, at.step, at.seconds, speed, at.best_bits, at.best_step, interrupted_by, was_finished)
