"""The initial locations of GumbelArgmax, and the context that it needs."""

import pytest
import torch
from torch import Tensor, nn

from unordinal.surjections.argmax import GumbelArgmax

H = 2


def context_of(x: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """A context that depends on x."""
    return torch.stack([torch.sin(x.to(dtype)), torch.cos(2 * x.to(dtype))], dim=-1)


def test_gumbel_starts_at_the_frequencies_of_its_first_batch() -> None:
    surjection = GumbelArgmax(3, nn.Linear(H, 3))
    nn.init.zeros_(surjection.phi.weight)  # type: ignore[union-attr, arg-type]
    nn.init.zeros_(surjection.phi.bias)  # type: ignore[union-attr, arg-type]
    x = torch.tensor([[0, 0, 0, 0, 0, 1]])
    surjection.eval()
    surjection.lift(x, context_of(x, torch.float32))
    assert torch.equal(surjection.offset, torch.zeros(3))
    surjection.train()
    surjection.lift(x, context_of(x, torch.float32))
    torch.testing.assert_close(torch.softmax(surjection.offset, 0), torch.tensor([6.0, 2.0, 1.0]) / 9)
    surjection.lift(2 - x, context_of(x, torch.float32))
    torch.testing.assert_close(torch.softmax(surjection.offset, 0), torch.tensor([6.0, 2.0, 1.0]) / 9)


def test_locations_computed_from_a_context_need_one() -> None:
    with pytest.raises(ValueError, match="phi of GumbelArgmax needs a context"):
        GumbelArgmax(3, nn.Linear(H, 3)).lift(torch.zeros(1, 1).long())
