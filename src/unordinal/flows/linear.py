"""Invertible linear maps of the channels."""

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection, num_positions


class InvertibleLinear(Bijection):
    """A learned invertible matrix over channels (an invertible 1x1 convolution) as P L U, log-determinant in O(C).

    It starts as a random rotation.
    """

    sign: Tensor
    permutation: Tensor

    def __init__(self, num_channels: int):
        super().__init__()
        # drawn on the CPU, where every machine draws the same; on the meta device there is nothing to factorise
        noise = torch.randn(num_channels, num_channels, dtype=torch.float64, device="cpu")
        if torch.get_default_device().type == "meta":
            permutation = lower = upper = torch.empty_like(noise, device="meta")
        else:
            permutation, lower, upper = torch.linalg.lu(torch.linalg.qr(noise)[0])
        diagonal = upper.diagonal()
        kind = torch.get_default_dtype()
        self.lower = nn.Parameter(lower.tril(-1).to(kind))
        self.upper = nn.Parameter(upper.triu(1).to(kind))
        self.log_diagonal = nn.Parameter(diagonal.abs().log().to(kind))
        self.register_buffer("sign", diagonal.sign().to(kind))
        self.register_buffer("permutation", permutation.to(kind))

    def factors(self) -> tuple[Tensor, Tensor]:
        """The unit lower and the upper triangular factor: two (C, C)."""
        lower = self.lower.tril(-1) + torch.eye(len(self.lower), device=self.lower.device, dtype=self.lower.dtype)
        return lower, self.upper.triu(1) + torch.diag(self.sign * self.log_diagonal.exp())

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        lower, upper = self.factors()
        return v @ (self.permutation @ lower @ upper).mT, self.log_det(v)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        lower, upper = self.factors()
        identity = torch.eye(len(lower), device=lower.device, dtype=lower.dtype)
        half = torch.linalg.solve_triangular(lower, self.permutation.mT @ identity, upper=False, unitriangular=True)
        return z @ torch.linalg.solve_triangular(upper, half, upper=True).mT, -self.log_det(z)

    def log_det(self, v: Tensor) -> Tensor:
        return (num_positions(v) * self.log_diagonal.sum()).expand(len(v))
