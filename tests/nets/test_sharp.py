"""Sharp features, compared with their formula."""

import torch

from unordinal.nets.sharp import SharpFeatures


@torch.no_grad()
def test_each_number_and_a_steep_tanh_of_it() -> None:
    look = SharpFeatures(2).double()
    v = torch.randn(3, 5, 2, dtype=torch.float64)
    torch.testing.assert_close(look(v), torch.cat([v, torch.tanh(4 * v)], dim=-1))
    look.scale.copy_(torch.tensor([2.0, -1.0]))
    look.shift.copy_(torch.tensor([0.5, 3.0]))
    expected = torch.stack([v[..., 0], v[..., 1], torch.tanh(2 * v[..., 0] + 0.5), torch.tanh(3 - v[..., 1])], dim=-1)
    torch.testing.assert_close(look(v), expected)
    assert look.out_channels == 4
