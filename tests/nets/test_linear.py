"""The linear layer that is initialised to zero."""

import torch

from unordinal.nets.linear import zero_linear


def test_it_starts_at_zero_and_learns() -> None:
    layer = zero_linear(3, 2)
    h = torch.randn(5, 3)
    assert torch.equal(layer(h), torch.zeros(5, 2))
    layer(h).sum().backward()
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad, h.sum(0).expand(2, 3))
