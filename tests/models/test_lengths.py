"""The distribution of lengths: smoothed counts, for each class of the first label."""

import pytest
import torch
from contracts import chi_square_p_value

from unordinal.models.lengths import Lengths

COUNTS = ((3, 1, 5, 2), (1, 1, 1, 7), (4, 2, 6, 9))


@pytest.mark.parametrize("value", [0, 1, 2])
def test_lengths_have_smoothed_counts_given_the_first_label(value: int) -> None:
    lengths = Lengths(COUNTS)
    expected = (torch.tensor(COUNTS[value]) + 1) / (sum(COUNTS[value]) + 4)
    cond = torch.tensor([[value, 3]]).expand(4, -1)
    torch.testing.assert_close(lengths(torch.arange(4), cond).exp(), expected)
    assert float(lengths(torch.arange(4), cond).exp().sum()) == pytest.approx(1)
    drawn = lengths.draw(20_000, cond[:1].expand(20_000, -1), torch.Generator().manual_seed(0))
    assert chi_square_p_value(torch.bincount(drawn, minlength=4).double(), expected.double()) > 1e-5


def test_without_a_label_all_examples_count() -> None:
    torch.testing.assert_close(Lengths(COUNTS)(torch.arange(4)), Lengths(COUNTS[2:])(torch.arange(4)))
