"""Settings that no run can be made of, refused before there is a folder for it."""

import math

import torch

from unordinal.config import OptimConfig, TrainConfig
from unordinal.train.budget import Budget

LARGEST_SEED = 2**63 - 1


def check_settings(config: TrainConfig, optim: OptimConfig) -> None:
    """Raise a ValueError that names the first setting that makes no sense."""
    Budget.of(config, 1.0)
    parts = 1 if config.accumulate is None else config.accumulate
    if config.batch_size < 1 or parts < 1 or config.batch_size % parts:
        raise ValueError(f"`batch_size` {config.batch_size} must be a positive multiple of `accumulate` {parts}")
    for name, value in (("lr", config.lr), ("optim.matrix_lr", optim.matrix_lr)):
        if not 0 < value < math.inf:
            raise ValueError(f"`{name}` must be above 0, got {value:g}")
    for name, count in (
        ("checkpoint_every", config.checkpoint_every),
        ("validate_examples", config.validate_examples),
        ("validate_every", 1 if config.validate_every is None else config.validate_every),
    ):
        if count < 1:
            raise ValueError(f"`{name}` must be at least 1, got {count}")
    if not 0 <= config.seed <= LARGEST_SEED:
        raise ValueError(f"`seed` must be between 0 and {LARGEST_SEED}, got {config.seed}")
    for name, share in (("optim.ema", optim.ema), ("optim.beta2", optim.beta2), ("mutate", config.mutate)):
        if not 0 <= share < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1, got {share:g}")
    if not 0 < optim.decay_per_epoch <= 1:
        raise ValueError(f"`optim.decay_per_epoch` must be above 0 and at most 1, got {optim.decay_per_epoch:g}")
    if optim.clip is not None and not optim.clip > 0:
        raise ValueError(f"`optim.clip` must be above 0, got {optim.clip:g}")
    if optim.warmup < 0:
        raise ValueError(f"`optim.warmup` must be at least 0, got {optim.warmup}")
    if not 0 <= optim.weight_decay < math.inf:
        raise ValueError(f"`optim.weight_decay` must be at least 0, got {optim.weight_decay:g}")


def check_precision(config: TrainConfig, device: torch.device) -> None:
    """Raise a ValueError if the device cannot compute in the precision that is asked for."""
    if config.precision == "bf16" and device.type != "cuda":
        raise ValueError(f"`precision` bf16 is for cuda, and this run is on {device.type}; leave it out")
