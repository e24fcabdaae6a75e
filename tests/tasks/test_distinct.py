"""Samples that differ from each other, or from the training data."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from unordinal.api import fit
from unordinal.tasks.distinct import draw_distinct, keys_of


def drawn(num: int, turn: int) -> Tensor:
    """Draws of ten rows, of which five are even."""
    return torch.randint(10, (num, 1), generator=torch.Generator().manual_seed(turn))


def test_samples_are_unique_and_novel_and_the_shares_are_those_of_all_draws() -> None:
    seen = set(keys_of(np.arange(0, 10, 2).reshape(-1, 1)))
    x, shares = draw_distinct(drawn, 5, unique=True, seen=seen)
    assert sorted(x.flatten().tolist()) == [1, 3, 5, 7, 9]
    assert 0 < shares["unique"] <= 1
    assert 0.2 < shares["novel"] < 0.9
    again, only = draw_distinct(drawn, 40, unique=False, seen=None)
    assert torch.equal(again, drawn(40, 0))
    assert only == {"unique": 10 / 40}


def test_what_cannot_be_had_is_refused() -> None:
    with pytest.raises(ValueError, match=r"only 10 of .* samples differ as wanted; ask for fewer"):
        draw_distinct(drawn, 11, unique=True, seen=None)


def test_a_run_compares_with_its_training_data() -> None:
    rows = np.array([[0, 0], [0, 1], [1, 0]] * 40)
    settings: dict[str, Any] = {"net.width": 16}
    run = fit("arm", rows, steps=1, progress=False, places=False, **settings)
    assert run.sample(3, novel=True).tolist() == [[1, 1]] * 3
    assert len({tuple(row) for row in run.sample(4, unique=True).tolist()}) == 4
