"""Checks of settings that need to know the device."""

import torch

from unordinal.config import TrainConfig


def check_precision(config: TrainConfig, device: torch.device) -> None:
    """Raise a ValueError if the device cannot compute in the precision that is asked for."""
    if config.precision == "bf16" and device.type != "cuda":
        raise ValueError(f"`precision` bf16 is for cuda, and this run is on {device.type}; leave it out")
