"""Random batches to train on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unordinal.config import TrainConfig
from unordinal.data.splits import Split
from unordinal.train.batches import check_lengths, draw_batch

TEXT = Split(np.arange(1000) % 251, length=16)
CONFIG = TrainConfig(batch_size=4)


def test_examples_are_cut_into_pieces_of_one_length() -> None:
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(30):
        x, starts = draw_batch(TEXT, replace(CONFIG, lengths=(4, 8, 16)), generator, 251)
        seen.add(x.shape[1])
        assert x.numel() == 64
        assert len(starts) == len(x)
        for row, start in zip(x, starts, strict=True):
            assert row.tolist() == [(start + i) % 251 for i in range(x.shape[1])]
    assert seen == {4, 8, 16}


def test_without_lengths_batches_are_the_crops_of_the_split() -> None:
    one, two = (torch.Generator().manual_seed(3) for _ in range(2))
    x, starts = draw_batch(TEXT, CONFIG, one, 251)
    y, others = TEXT.crops(4, two)
    assert torch.equal(x, y)
    assert starts == others


def test_a_share_of_the_symbols_is_redrawn() -> None:
    one, two = (torch.Generator().manual_seed(3) for _ in range(2))
    config = replace(CONFIG, batch_size=400, mutate=0.2)
    x, starts = draw_batch(TEXT, config, one, 251)
    plain, others = TEXT.crops(400, two)
    assert starts == others
    share, expected = float((x != plain).double().mean()), 0.2 * 250 / 251
    assert share == pytest.approx(expected, abs=4.5 * (0.16 / x.numel()) ** 0.5)
    assert 0 <= int(x.min()) <= int(x.max()) < 251


def test_lengths_that_do_not_fit_are_refused() -> None:
    check_lengths(replace(CONFIG, lengths=(4, 16)), (16,))
    for lengths, shape in (((5,), (16,)), ((0,), (16,)), ((32,), (16,))):
        with pytest.raises(ValueError, match="must divide the 16 symbols"):
            check_lengths(replace(CONFIG, lengths=lengths), shape)
    with pytest.raises(ValueError, match="are for sequences"):
        check_lengths(replace(CONFIG, lengths=(4,)), (8, 8))
