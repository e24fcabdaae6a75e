"""Dequantisation: uniform noise, and codes that represent no class."""

import torch
from contracts import chi_square_p_value
from torch import nn

from unordinal.surjections.rounding import OneHotRounding, OrdinalRounding


def test_codes_that_represent_no_class() -> None:
    rounding = OneHotRounding(3)
    v = torch.tensor([[1.5, 0.2, 0.2], [1.5, 1.5, 0.2], [0.1, 0.1, 0.1], [2.5, 0.1, 0.1], [1.5, -0.5, 0.1]])
    assert rounding.quantize(v).tolist() == [0, 3, 3, 3, 3]
    assert OrdinalRounding(3).quantize(torch.tensor([[-0.1], [0.0], [2.9], [3.0]])).tolist() == [3, 0, 2, 3]


def test_uniform_noise_is_added_to_the_one_hot_and_its_density_is_one() -> None:
    x = torch.randint(3, (2000, 2), generator=torch.Generator().manual_seed(0))
    for surjection, low in ((OneHotRounding(3), nn.functional.one_hot(x, 3)), (OrdinalRounding(3), x.unsqueeze(-1))):
        torch.manual_seed(0)
        v, log_q = surjection.lift(x)
        u = v - low
        assert torch.equal(log_q, torch.zeros(2000))
        counts = torch.histc(u, 20, 0, 1)
        assert int(counts.sum()) == u.numel()
        assert chi_square_p_value(counts.double(), torch.full((20,), 0.05, dtype=torch.float64)) > 1e-4
