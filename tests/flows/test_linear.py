"""Invertible linear layers, compared with those of zuko and with their dense matrix."""

import torch
import zuko

from unordinal.flows.linear import InvertibleLinear


def test_lu_agrees_with_zuko_and_with_the_dense_matrix() -> None:
    torch.manual_seed(0)
    linear = InvertibleLinear(5).double()
    for parameter in linear.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    lower, upper = linear.factors()
    diagonal = upper.diagonal()  # zuko keeps it in the lower factor
    oracle = zuko.transforms.LULinearTransform(lower * diagonal + (upper / diagonal.unsqueeze(1)).triu(1))
    v = torch.randn(7, 4, 5, dtype=torch.float64)
    z, log_det = linear(v)
    torch.testing.assert_close(z, oracle(v) @ linear.permutation.mT, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(log_det, oracle.log_abs_det_jacobian(v, v).sum(dim=1), rtol=1e-10, atol=1e-10)
    dense = linear.permutation @ lower @ upper
    torch.testing.assert_close(log_det, 4 * torch.linalg.slogdet(dense)[1].expand(7), rtol=1e-10, atol=1e-10)


def test_linear_starts_as_a_rotation() -> None:
    torch.manual_seed(0)
    linear = InvertibleLinear(6)
    v = torch.randn(3, 2, 6)
    z, log_det = linear(v)
    torch.testing.assert_close(z.norm(dim=-1), v.norm(dim=-1))
    assert float(log_det.detach().abs().max()) < 1e-4
