"""Coupling layers, compared with their formula."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from unordinal.flows.coupling import Coupling, split_of
from unordinal.flows.elementwise import Affine


class FunctionNet(nn.Module):
    """A network that applies a given function."""

    def __init__(self, function: Callable[[Tensor], Tensor]):
        super().__init__()
        self.function = function

    def forward(self, h: Tensor) -> Tensor:
        return self.function(h)


def test_the_fixed_channels_determine_how_the_others_are_transformed() -> None:
    """The network returns shift = fixed + cond and log-scale = fixed - cond, so the result has a closed form."""

    def net(given: Tensor) -> Tensor:
        fixed, cond = given.chunk(2, dim=-1)
        return torch.stack([fixed + cond, fixed - cond], dim=-1).flatten(-2)

    layer = Coupling(FunctionNet(net), Affine(), num_channels=4)
    v, cond = torch.randn(3, 5, 4, dtype=torch.float64), torch.randn(3, 5, 2, dtype=torch.float64)
    z, log_det = layer(v, cond)
    fixed, moved = v.chunk(2, dim=-1)
    shift, log_scale = 10 * torch.tanh((fixed + cond) / 10), 2 * torch.tanh((fixed - cond) / 2)  # Affine's bounds
    torch.testing.assert_close(z, torch.cat([fixed, (moved - shift) * torch.exp(-log_scale)], dim=-1))
    torch.testing.assert_close(log_det, -log_scale.sum((1, 2)))


def test_half_of_the_channels_are_fixed_rounded_up() -> None:
    assert [split_of(num) for num in (2, 3, 4, 5)] == [1, 2, 2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Coupling(nn.Identity(), Affine(), num_channels=1), "at least 2 channels, got 1"),
        (lambda: Coupling(nn.Identity(), Affine(), num_channels=3, num_fixed=3), "must be between 1 and 2, got 3"),
    ],
)
def test_impossible_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
