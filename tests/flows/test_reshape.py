"""Squeezes and reversals: every value ends up in the right place."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from unordinal.flows.reshape import Reversal, Squeeze


def test_squeeze_gathers_blocks_row_by_row() -> None:
    v = torch.arange(2 * 4 * 6 * 3).reshape(2, 4, 6, 3)
    z, log_det = Squeeze()(v)
    assert z.shape == (2, 2, 3, 12)
    # the block of row 1, column 2: pixels (2, 4), (2, 5), (3, 4), (3, 5), three channels each
    assert torch.equal(z[0, 1, 2], torch.cat([v[0, 2, 4], v[0, 2, 5], v[0, 3, 4], v[0, 3, 5]]))
    assert torch.equal(log_det, torch.zeros(2, dtype=v.dtype))
    assert torch.equal(Squeeze().inverse(z)[0], v)
    text = torch.arange(2 * 6 * 2).reshape(2, 6, 2)
    assert torch.equal(Squeeze()(text)[0], text.reshape(2, 3, 4))
    assert torch.equal(Squeeze().inverse(text.reshape(2, 3, 4))[0], text)
    with pytest.raises(ValueError, match=r"needs even sides, got \(3, 4\)"):
        Squeeze()(torch.zeros(1, 3, 4, 2))
    with pytest.raises(ValueError, match="needs a multiple of 4 channels, got 6"):
        Squeeze().inverse(torch.zeros(1, 2, 2, 6))


def test_reversals_reorder_values() -> None:
    v = torch.arange(2 * 4 * 3).reshape(2, 4, 3)
    assert Reversal(1)(v)[0][0, :, 0].tolist() == [9, 6, 3, 0]
    assert Reversal(-1)(v)[0][0, 0].tolist() == [2, 1, 0]


@pytest.mark.parametrize(("make", "message"), [(lambda: Reversal(0), "axis 0 is the batch")])
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
