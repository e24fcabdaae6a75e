"""The recipe of block diffusion: sizes of blocks, and their shares in training."""

import pytest

from unordinal.data.spec import DataSpec
from unordinal.models.block import BlockModel
from unordinal.overrides import with_settings
from unordinal.recipes import configured

SMALL = {"net.width": 8, "net.num_blocks": 1, "net.num_heads": 1}


def built(length: int = 12, **settings: object) -> BlockModel:
    config = with_settings(configured("block"), {**SMALL, **settings})
    model = config.model.build(DataSpec("letters", 4, (length,)))
    assert isinstance(model, BlockModel)
    return model


def test_sizes_and_shares_are_those_of_the_settings() -> None:
    model = built(block=4, also=(1, "all"), also_share=0.1)
    assert model.block == 4
    assert model.sizes == [4, 1, 12]
    assert model.shares == pytest.approx([0.8, 0.1, 0.1])
    assert not model.is_exact
    assert built(block=1).is_exact
    assert built(block="all").block == 12
    assert built(length=3, block=4).block == 3  # short examples are one block


def test_settings_that_fit_no_model_are_refused() -> None:
    with pytest.raises(ValueError, match=r"0\.5 of 2 sizes leaves no batch"):
        built(also=(1, 2), also_share=0.5)
    with pytest.raises(ValueError, match="`block` must be a whole number of at least 1 or all, got 0"):
        built(block=0)
