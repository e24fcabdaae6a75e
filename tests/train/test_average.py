"""The moving average of weights, and runs that keep none."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from unordinal.config import OptimConfig, TrainConfig
from unordinal.data import load_data
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.ngrams import NgramEmbedding
from unordinal.nets.settings import DiffusionTransformer
from unordinal.recipes.diffusion import MultinomialSettings
from unordinal.runs.folder import RunFolder
from unordinal.train.average import Averaged
from unordinal.train.loop import Loop


def loop_of(tmp_path: Path, optim: OptimConfig) -> Loop:
    x = np.random.default_rng(0).integers(0, 3, (400, 4))
    data = load_data(np.concatenate([x, x], axis=1), places=False)
    torch.manual_seed(0)
    model = MultinomialSettings(DiffusionTransformer(32, 1, global_heads=2, local_heads=0), 20).build(data.spec)
    config = TrainConfig(steps=300, batch_size=32, lr=3e-3)
    return Loop(model, data, config, optim, RunFolder(tmp_path), torch.device("cpu"))


def test_averaged_weights_follow_the_recursion(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, OptimConfig(ema=0.9))
    name = "net.out.weight"
    expected: Tensor | None = None
    for step in range(120):
        loop.train_step()
        now = loop.model.state_dict()[name].double()
        decay = min(0.9, (1 + step) / (10 + step))
        expected = now if expected is None else decay * expected + (1 - decay) * now
    assert expected is not None
    torch.testing.assert_close(loop.ema.module.state_dict()[name].double(), expected, rtol=1e-4, atol=1e-6)


def test_no_average_is_no_copy(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, replace(OptimConfig(), ema=0.0))
    assert loop.ema.module is loop.model
    loop.train_step()
    assert loop.validate()["val_bits_per_dim"] > 0


def test_averaged_weights_are_refused_where_none_are_kept(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, OptimConfig(ema=0.9))
    state = Averaged(loop.model, 0.9).state_dict()
    plain = Averaged(loop.model, 0.0)
    assert plain.state_dict() == {}
    plain.load_state_dict({})
    with pytest.raises(ValueError, match=r"written with another setting of `optim\.ema`"):
        plain.load_state_dict(state)
    with pytest.raises(ValueError, match=r"written with another setting of `optim\.ema`"):
        Averaged(loop.model, 0.9).load_state_dict({})


def test_tables_of_ngrams_are_shared_not_averaged() -> None:
    ngrams = NgramEmbedding(4, 8, orders=(2,), rows=16, row_width=4)
    model = AutoregressiveModel(
        ClassTransformer(3, width=8, num_blocks=1, num_heads=2, ngrams=ngrams), event_shape=(5,)
    )
    average = Averaged(model, 0.9)
    for value in (1.0, 2.0):
        for p in model.parameters():
            torch.nn.init.constant_(p, value)
        average.update_parameters(model)
    assert isinstance(average.module, AutoregressiveModel)
    assert average.module.net.ngrams is not None
    assert torch.equal(average.module.net.ngrams.tables[0].get_parameter("weight"), torch.full((16, 4), 2.0))
    assert 1 < average.module.net.out.weight[0, 0].item() < 2
