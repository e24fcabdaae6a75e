"""Settings that the device cannot have: refused by name."""

import pytest
import torch

from unordinal.config import TrainConfig
from unordinal.train.checks import check_precision


def test_short_floats_are_for_cuda() -> None:
    for device in ("cpu", "mps", "meta"):
        with pytest.raises(ValueError, match=f"bf16 is for cuda, and this run is on {device}; leave it out"):
            check_precision(TrainConfig(precision="bf16"), torch.device(device))
        check_precision(TrainConfig(), torch.device(device))
    check_precision(TrainConfig(precision="bf16"), torch.device("cuda"))
