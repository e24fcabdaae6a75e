"""Autoregressive Transformers at size paper against their own papers."""

import pytest

from unordinal.recipes import configured
from unordinal.recipes.arm import ArmSettings


def test_the_64_layers() -> None:
    model = configured("text8/arm", "paper").model
    assert isinstance(model, ArmSettings)
    assert (model.net.num_blocks, model.net.width, model.net.num_heads, model.net.dropout) == (64, 512, 2, 0.55)
    assert model.auxiliary


@pytest.mark.parametrize("size", ["tiny", "small", "paper"])
def test_segments_are_a_quarter_of_a_crop(size: str) -> None:
    model = configured("text8/arm-xl", size).model
    assert isinstance(model, ArmSettings)
    assert model.num_segments == 4
