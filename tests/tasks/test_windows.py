"""Windows over long sequences."""

import pytest
import torch

from unordinal.tasks.windows import batches, joined, windows


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(("size", "margin"), [(10, 0), (10, 2), (11, 4), (64, 31)])
def test_every_position_counts_once_and_away_from_edges(size: int, margin: int, is_causal: bool) -> None:
    for length in (1, size - 1, size, size + 1, 3 * size + 5):
        cut = windows(length, size, margin, is_causal=is_causal)
        assert [position for w in cut for position in range(w.first, w.last)] == list(range(length))
        for w in cut:
            assert w.stop - w.start == min(size, length)
            assert w.start == 0 or w.first - w.start >= margin
            assert w.stop == length or is_causal or w.stop - w.last >= margin


def test_pieces_give_what_the_whole_gives() -> None:
    """A function that looks three positions to either side is the same in windows with a margin of three."""
    x = torch.randn(200, dtype=torch.float64)
    kernel = torch.randn(1, 1, 7, dtype=torch.float64)

    def near(v: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.conv1d(v.unsqueeze(1), kernel, padding=3).squeeze(1)

    cut = windows(len(x), 32, 3)
    parts = [part for _, seen in batches(x, cut, 4) for part in near(seen)]
    torch.testing.assert_close(joined(cut, parts), near(x.unsqueeze(0))[0])


def test_a_margin_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a margin below half of that, got 5"):
        windows(20, 10, 5)
