"""Transformers over real vectors: which positions they read. Causality is tested in flows/test_autoregressive.py."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from unordinal.nets.embeddings import rotary_angles
from unordinal.nets.sequence import CausalTransformer, PlainBlock, SequenceTransformer


def test_the_bidirectional_transformer_reads_all_positions() -> None:
    torch.manual_seed(0)
    net = SequenceTransformer(2, 3, width=8, num_blocks=1, num_heads=2, conv=3)
    net.out.weight.data.normal_()
    v = torch.randn(1, 7, 2, requires_grad=True)
    (gradient,) = torch.autograd.grad(net(v)[0, 3].sum(), v)
    assert bool((gradient[0].abs().sum(-1) > 0).all())


def test_the_last_positions_equal_those_of_the_whole_block() -> None:
    """A causal block computed for the last positions only, compared with all positions."""
    torch.manual_seed(0)
    block = PlainBlock(8, num_heads=2, conv=3, num_blocks=1, is_causal=True).double()
    h = torch.randn(2, 9, 8, dtype=torch.float64)
    cos, sin = (a.double() for a in rotary_angles(9, 4, h.device))
    with torch.no_grad():
        torch.testing.assert_close(block.forward_last(h, 4, cos, sin), block(h, cos, sin)[:, -4:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CausalTransformer(2, width=9, num_blocks=1, num_heads=2), "width 9, heads 2"),
        (lambda: CausalTransformer(2, width=8, num_blocks=1, num_heads=2, conv=4), "must be odd"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
