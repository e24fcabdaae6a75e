"""How a run starts: its folder, its seed, and what may change when it goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from unordinal.config import TrainConfig
from unordinal.data import Data, load_data
from unordinal.data.arrays import ArraySource
from unordinal.data.given import GivenSource
from unordinal.model import CategoricalModel
from unordinal.overrides import with_settings
from unordinal.parallel.sharding import check_precision
from unordinal.recipes import configured
from unordinal.runs.folder import RunFolder
from unordinal.train.log import SilentReporter
from unordinal.train.start import start_run, train_run

CONFIG = replace(
    with_settings(configured("arm"), {"net.width": 8, "num_blocks": 1, "num_heads": 1, "steps": 3, "batch_size": 4}),
    data=GivenSource(),
)


def numbers(seed: int = 0) -> Data:
    return load_data(np.random.default_rng(seed).integers(0, 3, (100, 8)))


def test_the_same_seed_gives_the_same_weights_and_another_one_others(tmp_path: Path) -> None:
    def weights(seed: int, name: str) -> list[torch.Tensor]:
        config = with_settings(CONFIG, {"seed": seed})
        return list(start_run(config, numbers().spec, RunFolder(tmp_path / name), resume=False).parameters())

    first, again, other = weights(1, "a"), weights(1, "b"), weights(2, "c")
    assert all(torch.equal(x, y) for x, y in zip(first, again, strict=True))
    assert not all(torch.equal(x, y) for x, y in zip(first, other, strict=True))


def test_the_reporter_is_told_of_the_model_before_the_first_step(tmp_path: Path) -> None:
    told: list[Any] = []

    class Teller(SilentReporter):
        def built(self, model: CategoricalModel) -> None:
            told.append(sum(p.numel() for p in model.parameters()))

        def started(self, step: int, fraction: float) -> None:
            told.append((step, fraction))

        def stepped(self, metrics: dict[str, Any], fraction: float) -> None:
            told.append((metrics["step"], round(fraction, 3)))

    outcome = train_run(CONFIG, numbers(), RunFolder(tmp_path / "run"), reporter=Teller())
    size = sum(p.numel() for p in CONFIG.model.build(numbers().spec).parameters())
    assert told == [size, (0, 0.0), (1, 0.333), (2, 0.667), (3, 1.0)]
    assert outcome.step == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 5}, "train.seed: 0 -> 5"),
        ({"net.width": 16}, "model.net.width: 8 -> 16"),
        ({"ema": 0.5}, "optim.ema: 0.99 -> 0.5"),
        ({"batch_size": 8}, "train.batch_size: 4 -> 8"),
        ({"flips": True}, "data.flips: False -> True"),
    ],
)
def test_what_would_make_it_another_run_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder, spec = RunFolder(tmp_path / "run"), numbers().spec
    start_run(CONFIG, spec, folder, resume=False)
    before = folder.config.read_text()
    with pytest.raises(ValueError, match=f"cannot resume {folder.path} with other settings: .*{message}"):
        start_run(with_settings(CONFIG, changes), spec, folder, resume=True)
    assert folder.config.read_text() == before
    with pytest.raises(ValueError, match="already holds a run"):
        start_run(CONFIG, spec, folder, resume=False)


def test_budget_rate_and_the_place_of_the_data_may_change(tmp_path: Path) -> None:
    folder, spec = RunFolder(tmp_path / "run"), numbers().spec
    start_run(CONFIG, spec, folder, resume=True)  # nothing is there yet: a new run
    longer = with_settings(CONFIG, {"steps": 9, "lr": 1e-4, "checkpoint_every": 5, "compile": True})
    start_run(longer, spec, folder, resume=True)
    assert folder.read()[0] == longer
    here, there = (replace(CONFIG, data=ArraySource(f"/{where}/x.npy")) for where in ("here", "there"))
    other = RunFolder(tmp_path / "other")
    start_run(here, spec, other, resume=False)
    start_run(there, spec, other, resume=True)
    assert other.read()[0] == there


def test_other_data_are_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    start_run(CONFIG, numbers().spec, folder, resume=False)
    for spec in (numbers(seed=1).spec, replace(numbers().spec, split_sizes=(80, 10, 10))):
        with pytest.raises(ValueError, match="the data array are not those it was trained on"):
            start_run(CONFIG, spec, folder, resume=True)


def test_nothing_is_made_of_settings_or_data_that_cannot_be(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ValueError, match="`precision` bf16 needs cuda"):
        train_run(with_settings(CONFIG, {"precision": "bf16"}), numbers(), folder)
    with pytest.raises(ValueError, match="the val split has no examples"):
        train_run(CONFIG, load_data(np.eye(8, dtype=int), split="1,0,0"), folder)
    with pytest.raises(ValueError, match="takes sequences"):
        train_run(CONFIG, load_data(np.random.default_rng(0).integers(0, 3, (100, 4, 4))), folder)
    assert not folder.path.exists()


def test_short_floats_are_for_cuda() -> None:
    for device in ("cpu", "mps", "meta"):
        with pytest.raises(ValueError, match=f"bf16 needs cuda, but this run is on {device}"):
            check_precision(TrainConfig(precision="bf16"), torch.device(device))
        check_precision(TrainConfig(), torch.device(device))
    check_precision(TrainConfig(precision="bf16"), torch.device("cuda"))
