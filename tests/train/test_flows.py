"""Models in the loop: what starts from data is restored, and a run without an average keeps no second copy."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal.config import OptimConfig, TrainConfig
from unordinal.data import data_from_array
from unordinal.model_config import ArgmaxFlowConfig, ArmConfig, DiscreteFlowConfig, LatentConfig, ModelConfig
from unordinal.models import build_model
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.surjections.argmax import GumbelArgmax
from unordinal.train.loop import Loop
from unordinal.train.run import RunFolder

DATA = data_from_array(np.random.default_rng(0).choice(3, (200, 6), p=[0.7, 0.2, 0.1]))
CONFIG = ArgmaxFlowConfig(
    surjection="gumbel-threshold", width=8, num_layers=1, num_mixtures=2, channel_width=4, context_width=4
)
LATENT: Any = {"latent_channels": 2, "width": 4, "num_layers": 1, "num_flows": 1, "channel_width": 2, "dropout": 0.5}
SCHEDULED: dict[str, ModelConfig] = {  # whose losses change with the budget, or which start from data
    "argmax flow": CONFIG,
    "auxiliary losses": ArmConfig(width=4, num_blocks=2, num_heads=1, dropout=0.5, auxiliary=True),
    "segments": ArmConfig(width=4, num_blocks=1, num_heads=1, num_segments=2),
    "latent af-af": LatentConfig(flow="af-af", **LATENT),
    "latent iaf-scf": LatentConfig(flow="iaf-scf", **LATENT),
    "discrete flow": DiscreteFlowConfig(width=4, num_layers=1, num_heads=1),
}
TRAIN = TrainConfig(steps=6, batch_size=8, lr=1e-2)


def loop_of(tmp_path: Path, optim: OptimConfig, seed: int = 0, config: ModelConfig = CONFIG) -> Loop:
    torch.manual_seed(seed)
    model = build_model(config, DATA.spec)
    return Loop(model, DATA, TRAIN, optim, RunFolder(tmp_path), torch.device("cpu"))


@pytest.mark.parametrize("name", SCHEDULED)
@pytest.mark.parametrize("ema", [0.9, 0.0])
def test_a_model_goes_on_bit_for_bit(name: str, ema: float, tmp_path: Path) -> None:
    optim, config = OptimConfig(ema=ema), SCHEDULED[name]
    whole = loop_of(tmp_path, optim, config=config)
    for _ in range(3):
        whole.train_step()
    state = copy.deepcopy(whole.state())
    expected = [whole.train_step()["loss"] for _ in range(3)]
    again = loop_of(tmp_path, optim, seed=99, config=config)
    again.restore(state)
    assert [again.train_step()["loss"] for _ in range(3)] == expected
    for module, other in ((whole.model, again.model), (whole.ema.module, again.ema.module)):
        for (key, value), (_, restored) in zip(module.state_dict().items(), other.state_dict().items(), strict=True):
            assert torch.equal(value, restored), key


def test_what_starts_from_data_has_started_in_the_average_too(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, OptimConfig())
    for module in (loop.model, loop.ema.module):
        assert isinstance(module, ArgmaxFlow)
        started = [value for name, value in module.state_dict().items() if name.endswith("is_started")]
        assert len(started) == 2  # ActNorm and the Gumbel locations
        assert all(bool(value) for value in started)
        surjection = module.surjection
        assert isinstance(surjection, GumbelArgmax)
        assert float(torch.softmax(surjection.offset.detach(), 0)[0]) > 0.5


def test_no_average_is_no_copy(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, replace(OptimConfig(), ema=0.0))
    assert loop.ema.module is loop.model
    loop.train_step()
    assert loop.validate() > 0
