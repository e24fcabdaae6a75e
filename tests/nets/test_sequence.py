"""Transformers over real vectors: which positions they read. Causality is tested in flows/test_autoregressive.py."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from unordinal.nets.embeddings import rotary_angles
from unordinal.nets.sequence import CausalTransformer, DenoisingTransformer, PlainBlock, SequenceTransformer
from unordinal.nets.settings import Transformer


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
    block = PlainBlock(Transformer(8, 1, num_heads=2, conv=3), is_causal=True).double()
    h = torch.randn(2, 9, 8, dtype=torch.float64)
    cos, sin = (a.double() for a in rotary_angles(9, 4, h.device))
    with torch.no_grad():
        torch.testing.assert_close(block.forward_last(h, 4, cos, sin), block(h, cos, sin)[:, -4:])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: CausalTransformer(2, width=9, num_blocks=1, num_heads=2),
            "`width` 9 must be a multiple of twice the number of heads, 2",
        ),
        (lambda: CausalTransformer(2, width=8, num_blocks=1, num_heads=2, conv=4), "must be odd"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_denoiser_drops_channels_in_training_and_nothing_otherwise() -> None:
    """At its input and in its blocks: with one of the two alone the outputs differ as well."""
    torch.manual_seed(0)
    z = torch.randint(4, (2, 9))

    def denoiser(dropout: float) -> DenoisingTransformer:
        torch.manual_seed(0)
        net = DenoisingTransformer(3, width=16, num_blocks=2, num_heads=2, dropout=dropout, num_input_classes=4)
        net.out.weight.data.normal_()
        return net

    net, plain = denoiser(0.5), denoiser(0.0)
    with torch.no_grad():
        expected = plain.train()(z)
        torch.testing.assert_close(net.eval()(z), expected)
        assert not torch.allclose(net.train()(z), net(z))
        drops = [part for part in net.modules() if isinstance(part, torch.nn.Dropout)]
        assert len(drops) == 3  # the input, and each of the two blocks
        for kept in drops:
            for part in drops:
                part.train(part is kept)
            assert not torch.allclose(net(z), expected)
