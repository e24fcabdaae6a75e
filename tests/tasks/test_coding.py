"""Coded examples come back, and take as many bits as the model gives them: on every family that can code."""

import math

import numpy as np
import pytest
import torch
from forms import built
from hypothesis import given, settings
from hypothesis import strategies as st

from unordinal.model import CategoricalModel
from unordinal.models.tree import TreeModel
from unordinal.recipes import constructors
from unordinal.tasks.coding import probabilities, read, written


def tree() -> TreeModel:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 4, 500)
    rows = np.stack([first, (first + rng.integers(0, 2, 500)) % 5, rng.integers(0, 3, 500)], axis=1)
    model = TreeModel((4, 5, 3), (3,), has_edges=True)
    model.hooks.count(rows, rows)
    return model


def diffusion() -> CategoricalModel:
    torch.manual_seed(0)
    model = constructors.absorbing(3, height=4, width=8, **{"net.width": 8, "net.num_levels": 2})
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.2)
    return model.double().eval()


FAMILIES = {
    "arm": lambda: built("arm", "columns"),
    "arm of any order": lambda: built("arm", "columns", order="any"),
    "arm of lines": lambda: built("arm", "ends"),
    "chow-liu": lambda: tree().double(),
    "absorbing": diffusion,
}


@torch.no_grad()
@pytest.mark.parametrize("family", FAMILIES)
def test_examples_come_back_and_take_the_bits_of_the_model(family: str) -> None:
    model = FAMILIES[family]()
    x = model.sample(3000 if family != "absorbing" else 50, generator=torch.Generator().manual_seed(1))
    sizes = torch.full((len(x),), model.event_shape.numel())
    data, bits = written(model, x, sizes)
    assert torch.equal(read(model, data, sizes), x)
    assert abs(8 * len(data) - bits) <= 0.001 * bits + 64 * 8
    if family in ("arm", "arm of lines", "chow-liu"):
        exact = -float(model.log_prob(x).sum()) / math.log(2)  # type: ignore[operator]
        assert bits == pytest.approx(exact, rel=1e-4)


@torch.no_grad()
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 2**30))
@settings(max_examples=20, deadline=None)
def test_rows_of_any_length_come_back(sizes: list[int], seed: int) -> None:
    model = built("arm", "columns")
    x = model.sample(len(sizes), generator=torch.Generator().manual_seed(seed))
    some = torch.tensor(sizes)
    found = read(model, written(model, x, some)[0], some)
    for row, (a, b) in enumerate(zip(x, found, strict=True)):
        assert torch.equal(a[: sizes[row]], b[: sizes[row]])


def test_small_differences_of_logits_change_nothing() -> None:
    logits = torch.randn(50, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert np.array_equal(probabilities(logits), probabilities(logits + 1e-12))
    certain = torch.tensor([[0.0, -math.inf, -1e9]])
    assert (probabilities(certain) > 0).all()  # what the model thinks impossible can be coded too
