"""Invertible linear transformations of the channels."""

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection, num_positions


class InvertibleLinear(Bijection):
    """Multiply the channels of every position by a learned invertible matrix (an invertible 1x1 convolution).

    The matrix is stored as the product P L U of a fixed permutation and two triangular factors, so that its
    log-determinant costs O(C) (Kingma and Dhariwal 2018). It is initialised as a random rotation.

    Args:
        num_channels: the number of channels C.

    >>> linear, v = InvertibleLinear(3), torch.randn(2, 5, 3)
    >>> z, log_det = linear(v)
    >>> torch.allclose(linear.inverse(z)[0], v, atol=1e-5)
    True
    """

    sign: Tensor
    permutation: Tensor

    def __init__(self, num_channels: int):
        super().__init__()
        # Drawn on the CPU, so that every machine draws the same numbers. The meta device has no values to factorise.
        noise = torch.randn(num_channels, num_channels, dtype=torch.float64, device="cpu")
        if torch.get_default_device().type == "meta":
            permutation = lower = upper = torch.empty_like(noise, device="meta")
        else:
            permutation, lower, upper = torch.linalg.lu(torch.linalg.qr(noise)[0])
        diagonal = upper.diagonal()
        dtype = torch.get_default_dtype()
        self.lower = nn.Parameter(lower.tril(-1).to(dtype))
        self.upper = nn.Parameter(upper.triu(1).to(dtype))
        self.log_diagonal = nn.Parameter(diagonal.abs().log().to(dtype))
        self.register_buffer("sign", diagonal.sign().to(dtype))
        self.register_buffer("permutation", permutation.to(dtype))

    def factors(self) -> tuple[Tensor, Tensor]:
        """Return the unit lower and the upper triangular factor, both of shape (C, C)."""
        lower = self.lower.tril(-1) + torch.eye(len(self.lower), device=self.lower.device, dtype=self.lower.dtype)
        return lower, self.upper.triu(1) + torch.diag(self.sign * self.log_diagonal.exp())

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper = self.factors()
        return v @ (self.permutation @ lower @ upper).mT, self.log_det(v)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        lower, upper = self.factors()
        identity = torch.eye(len(lower), device=lower.device, dtype=lower.dtype)
        half = torch.linalg.solve_triangular(lower, self.permutation.mT @ identity, upper=False, unitriangular=True)
        return z @ torch.linalg.solve_triangular(upper, half, upper=True).mT, -self.log_det(z)

    def log_det(self, v: Tensor) -> Tensor:
        """Return the log-determinant of `forward`, of shape (B,)."""
        return (num_positions(v) * self.log_diagonal.sum()).expand(len(v))
