"""Fit a model that is counted instead of trained, and leave the same files as a training does."""

import math
import time

import numpy as np

from unordinal.config import TrainConfig
from unordinal.data.splits import Data
from unordinal.errors import RunError
from unordinal.model import CategoricalModel
from unordinal.runs.folder import RunFolder
from unordinal.train.log import MetricsFile, Reporter
from unordinal.train.running import Outcome
from unordinal.train.validation import Validation, Validator


def fit_by_counting(
    model: CategoricalModel, data: Data, config: TrainConfig, folder: RunFolder, reporter: Reporter
) -> Outcome:
    """Count a model from all training examples, validate it and publish it."""
    began = time.monotonic()
    reporter.started(0, 0.0)
    model.hooks.count(np.asarray(data.train.symbols), np.asarray(data.val.symbols))
    validator = Validator(data.val, config.validate_examples, config.batch_size)
    found = validator.add_round(model, Validation())
    if not math.isfinite(found.bits):
        raise RunError(f"the validation score is not finite ({found.bits:g})")
    seconds = time.monotonic() - began
    line = {"step": 1, "seconds": round(seconds, 3), "val_bits_per_dim": found.bits, "best_step": 1}
    line["val_standard_error"] = validator.error(model, found) or 0.0
    metrics = MetricsFile(folder.metrics, 0)
    metrics.write(line)
    metrics.close()
    reporter.validated(line)
    notes = {"step": 1, "weights": "counted", "val_bits_per_dim": found.bits}
    folder.publish(model.state_dict(), notes)
    return Outcome(model, 1, seconds, data.train.symbols.size / max(seconds, 1e-9), found.bits, 1)
