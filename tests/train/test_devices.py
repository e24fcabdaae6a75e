"""What a GPU would notice: nothing waits for it more than once a step, and everything follows the model's device."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import LEARNED, small_flags
from together import config_of
from torch.utils._python_dispatch import TorchDispatchMode

from unordinal.columns import Classes
from unordinal.config import RunConfig
from unordinal.data import Data
from unordinal.recipes import RECIPES
from unordinal.runs.folder import RunFolder
from unordinal.train.average import Averaged
from unordinal.train.batches import Feeder
from unordinal.train.loop import Loop
from unordinal.train.optim import build_optimizer

# A flow that is inverted by iteration looks whether it has converged.
LOOKS_AT_VALUES = {"latent-iaf-scf"}


def small_run(name: str, book: Path) -> tuple[RunConfig, Data]:
    data = "streets" if RECIPES[name].takes == ("maps",) else f"text:{book}"
    config = config_of([name, "--data", data, *small_flags(name, data), "--steps", "3", "--batch-size", "4"])
    return config, config.data.load()


class Waits(TorchDispatchMode):
    """Counts the operations that make the CPU wait for a value of the device."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.nonzero.default):
            self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", LEARNED)
def test_a_step_waits_for_the_device_at_most_once(name: str, book: Path, tmp_path: Path) -> None:
    config, data = small_run(name, book)
    torch.manual_seed(0)
    model = config.model.build(data.spec)
    loop = Loop(model, data, config.train, config.optim, RunFolder(tmp_path), torch.device("cpu"))
    loop.train_step()
    with Waits() as waits:
        loop.train_step()
    # The one wait is a copy of the losses to the CPU, which here is none.
    assert waits.count == 0 or name in LOOKS_AT_VALUES


@pytest.mark.parametrize("name", [name for name in LEARNED if name not in LOOKS_AT_VALUES])
def test_losses_and_steps_follow_the_device(name: str, book: Path) -> None:
    config, data = small_run(name, book)
    torch.manual_seed(0)
    model = config.model.build(data.spec)
    x = torch.from_numpy(data.train.examples(np.array([0, 1])).numpy())
    model.hooks.initialise(x)
    model.to("meta")
    x = x.to("meta")
    model.train()
    draw = model.hooks.draw(len(x))
    loss = model(x, draw)
    assert loss.device.type == "meta"
    loss.sum().backward()
    optimizer = build_optimizer(model, config.optim, config.train.lr)
    average = Averaged(model, 0.9)
    optimizer.step()
    average.update_parameters(model)
    average.update_parameters(model)
    model.eval()
    with torch.no_grad():
        assert model.elbo(x).device.type == "meta"
    assert all(p.device.type == "meta" for p in average.module.parameters())


def test_a_batch_that_is_drawn_ahead_is_the_one_that_would_have_been_drawn(book: Path) -> None:
    config, data = small_run("arm", book)
    cpu = torch.device("cpu")
    plain = Feeder(data.train, config.train, Classes(data.spec.num_classes), cpu)
    ahead = Feeder(data.train, config.train, Classes(data.spec.num_classes), cpu, is_ahead=True)
    for step in (0, 1, 2, 7, 8):  # a jump, as after a resumption
        x, _, starts = plain.take(step)
        y, _, others = ahead.take(step)
        assert torch.equal(x, y)
        assert starts == others
        plain.prefetch(step + 1)
        ahead.prefetch(step + 1)
    assert plain.ready is None
    assert ahead.ready is not None


def test_bf16_is_refused_where_there_is_no_cuda(book: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    config, data = small_run("arm", book)
    train = replace(config.train, precision="bf16")
    model = config.model.build(data.spec)
    with pytest.raises(ValueError, match="`precision` bf16 needs cuda, but this run is on cpu"):
        Loop(model, data, train, config.optim, RunFolder(tmp_path), torch.device("cpu"))
