"""Settings that no run can be made of: each is refused by its name."""

import math
from typing import Any

import pytest

from unordinal.config import OptimConfig, TrainConfig
from unordinal.train.checks import LARGEST_SEED, check_settings


@pytest.mark.parametrize(
    ("train", "optim", "message"),
    [
        ({"steps": 0}, {}, "`steps` must be at least 1, got 0"),
        ({"batch_size": 0}, {}, "`batch_size` 0 must be a positive multiple of `accumulate` 1"),
        ({"batch_size": 8, "accumulate": 3}, {}, "`batch_size` 8 must be a positive multiple of `accumulate` 3"),
        ({"accumulate": 0}, {}, "`accumulate` 0"),
        ({"mutate": 1.0}, {}, "`mutate` must be at least 0 and below 1, got 1"),
        ({"lr": 0.0}, {}, "`lr` must be above 0, got 0"),
        ({"lr": math.nan}, {}, "`lr` must be above 0, got nan"),
        ({"lr": math.inf}, {}, "`lr` must be above 0, got inf"),
        ({"checkpoint_every": 0}, {}, "`checkpoint_every` must be at least 1, got 0"),
        ({"validate_examples": 0}, {}, "`validate_examples` must be at least 1, got 0"),
        ({"validate_every": 0}, {}, "`validate_every` must be at least 1, got 0"),
        ({"seed": -1}, {}, "`seed` must be between 0 and"),
        ({"seed": LARGEST_SEED + 1}, {}, "`seed` must be between 0 and"),
        ({}, {"matrix_lr": -1.0}, "`optim.matrix_lr` must be above 0, got -1"),
        ({}, {"ema": 1.0}, "`optim.ema` must be at least 0 and below 1, got 1"),
        ({}, {"beta2": -0.1}, "`optim.beta2` must be at least 0 and below 1, got -0.1"),
        ({}, {"decay_per_epoch": 0.0}, "`optim.decay_per_epoch` must be above 0 and at most 1, got 0"),
        ({}, {"decay_per_epoch": 1.1}, "`optim.decay_per_epoch` must be above 0 and at most 1, got 1.1"),
        ({}, {"clip": 0.0}, "`optim.clip` must be above 0, got 0"),
        ({}, {"warmup": -1}, "`optim.warmup` must be at least 0, got -1"),
        ({}, {"weight_decay": math.nan}, "`optim.weight_decay` must be at least 0, got nan"),
    ],
)
def test_settings_that_make_no_sense_are_refused(train: dict[str, Any], optim: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_settings(TrainConfig(**{"steps": 5, **train}), OptimConfig(**optim))


def test_the_edges_of_what_makes_sense_are_accepted() -> None:
    train = TrainConfig(steps=1, batch_size=6, accumulate=3, seed=LARGEST_SEED, validate_every=1, checkpoint_every=1)
    check_settings(train, OptimConfig(ema=0.0, beta2=0.0, clip=1e-9, warmup=0, weight_decay=0.0, decay_per_epoch=1.0))
    check_settings(TrainConfig(minutes=0.01), OptimConfig())
