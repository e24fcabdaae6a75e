"""Random batches to train on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import unordinal
from unordinal.api import fit
from unordinal.columns import Classes
from unordinal.config import TrainConfig
from unordinal.data.splits import Split
from unordinal.train.batches import Feeder, check_lengths, draw_batch

TEXT = Split(np.arange(1000) % 251, length=16)
CONFIG = TrainConfig(batch_size=4)


def test_examples_are_cut_into_pieces_of_one_length() -> None:
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(30):
        x, starts = draw_batch(TEXT, replace(CONFIG, lengths=(4, 8, 16)), generator, Classes(251))
        seen.add(x.shape[1])
        assert x.numel() == 64
        assert len(starts) == len(x)
        for row, start in zip(x, starts, strict=True):
            assert row.tolist() == [(start + i) % 251 for i in range(x.shape[1])]
    assert seen == {4, 8, 16}


def test_without_lengths_batches_are_the_crops_of_the_split() -> None:
    one, two = (torch.Generator().manual_seed(3) for _ in range(2))
    x, starts = draw_batch(TEXT, CONFIG, one, Classes(251))
    y, others = TEXT.crops(4, two)
    assert torch.equal(x, y)
    assert starts == others


def test_a_share_of_the_symbols_is_redrawn() -> None:
    one, two = (torch.Generator().manual_seed(3) for _ in range(2))
    config = replace(CONFIG, batch_size=400, mutate=0.2)
    x, starts = draw_batch(TEXT, config, one, Classes(251))
    plain, others = TEXT.crops(400, two)
    assert starts == others
    share, expected = float((x != plain).double().mean()), 0.2 * 250 / 251
    assert share == pytest.approx(expected, abs=4.5 * (0.16 / x.numel()) ** 0.5)
    assert 0 <= int(x.min()) <= int(x.max()) < 251


def test_lengths_that_do_not_fit_are_refused() -> None:
    text, rows = (unordinal.arm(3, 16), fit("arm", np.eye(16, dtype=int), steps=1, progress=False).model)
    check_lengths(replace(CONFIG, lengths=(4, 16)), text)
    for lengths in ((5,), (0,), (32,)):
        with pytest.raises(ValueError, match="must divide the 16 symbols"):
            check_lengths(replace(CONFIG, lengths=lengths), text)
    for model in (unordinal.multinomial(3, height=8, width=8), rows):
        with pytest.raises(ValueError, match="are for sequences without places, ends and labels"):
            check_lengths(replace(CONFIG, lengths=(4,)), model)


def test_labels_come_with_their_examples() -> None:
    split = Split(np.arange(40).reshape(20, 2), labels=np.arange(20).reshape(20, 1))
    feeder = Feeder(split, replace(CONFIG, drop_labels=0.0), Classes(50), torch.device("cpu"), labels=(20,))
    x, cond, starts = feeder.take(3)
    assert cond is not None
    assert cond[:, 0].tolist() == starts == (x[:, 0] // 2).tolist()
    often = Feeder(split, TrainConfig(batch_size=2000), Classes(50), torch.device("cpu"), labels=(20,)).take(0)[1]
    assert often is not None
    assert 0.07 < float((often == 21).double().mean()) < 0.13  # dropped, which is not the same as missing, 20
    assert Feeder(TEXT, CONFIG, Classes(251), torch.device("cpu")).take(0)[1] is None
