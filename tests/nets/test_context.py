"""The receptive field of the context, and the small MLP compared with its formula."""

import pytest
import torch

from unordinal.nets.context import ClassContext, Mlp


@pytest.mark.parametrize("num_blocks", [0, 1, 2])
@torch.no_grad()
def test_a_block_sees_two_neighbours_on_either_side(num_blocks: int) -> None:
    torch.manual_seed(0)
    net = ClassContext(4, width=6, num_blocks=num_blocks).double()
    for parameter in net.parameters():  # including those that are initialised to zero
        parameter.normal_()
    x = torch.randint(4, (1, 15))
    other = x.clone()
    other[0, 7] = (other[0, 7] + 1) % 4
    changed = ((net(x) - net(other)).abs().amax(-1) > 1e-12)[0].nonzero().flatten().tolist()
    assert changed == list(range(7 - 2 * num_blocks, 8 + 2 * num_blocks))


@torch.no_grad()
def test_the_small_network_is_one_hidden_layer_and_starts_at_zero() -> None:
    net = Mlp(3, 2, width=5).double()
    h = torch.randn(4, 6, 3, dtype=torch.float64)
    assert torch.equal(net(h), torch.zeros(4, 6, 2, dtype=torch.float64))
    net.out.weight.normal_()
    net.out.bias.normal_()
    hidden = h @ net.hidden.weight.T + net.hidden.bias
    expected = (hidden * torch.sigmoid(hidden)) @ net.out.weight.T + net.out.bias
    torch.testing.assert_close(net(h), expected)


def test_impossible_contexts_are_refused() -> None:
    with pytest.raises(ValueError, match="got 0 and 1"):
        ClassContext(3, width=0, num_blocks=1)
    with pytest.raises(ValueError, match="got 4 and -1"):
        ClassContext(3, width=4, num_blocks=-1)
