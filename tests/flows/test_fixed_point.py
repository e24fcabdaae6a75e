"""Causal fixed points: the number of passes, and values and gradients compared with solving position by position."""

import torch
from torch import Tensor, nn

from unordinal.flows.fixed_point import causal_fixed_point


def test_as_many_passes_as_positions_are_enough() -> None:
    calls = 0

    def doubling(v: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return 1 + nn.functional.pad(2 * v[:, :-1], (1, 0))  # errors grow from position to position

    with torch.no_grad():
        v = causal_fixed_point(doubling, torch.zeros(1, 9))
        assert causal_fixed_point(doubling, torch.zeros(1, 9), most=4) is None
    assert v is not None
    assert torch.equal(v, 2.0 ** torch.arange(1, 10).unsqueeze(0) - 1)
    assert calls <= 9 + 4


def test_values_and_gradients_equal_those_of_solving_by_position() -> None:
    """The fixed point of b + tanh(v) A for a strictly triangular A, compared with autodiff through all positions."""
    torch.manual_seed(0)
    b = torch.randn(3, 7, dtype=torch.float64, requires_grad=True)
    a = torch.randn(7, 7, dtype=torch.float64, requires_grad=True)
    v = causal_fixed_point(lambda v: b + torch.tanh(v) @ a.triu(1), torch.zeros_like(b))
    columns: list[Tensor] = []
    for place in range(7):
        columns.append(b[:, place] + sum(torch.tanh(columns[i]) * a[i, place] for i in range(place)))
    expected = torch.stack(columns, dim=1)
    assert v is not None
    torch.testing.assert_close(v, expected)
    weight = torch.randn(3, 7, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad((found * weight).sum(), [b, a]) for found in (v, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-10)
