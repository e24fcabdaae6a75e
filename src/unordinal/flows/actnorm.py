"""Activation normalisation: an affine map per channel that starts from the first batch it sees."""

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection, num_positions
from unordinal.flows.start import Start

SMALLEST_SCALE = 1e-6  # guards the logarithm where a channel is constant in the first batch


class ActNorm(Bijection):
    """z = (v - shift) exp(-log_scale) per channel; the first batch in training mode comes out standardised."""

    is_started: Tensor  # saved with the weights; `Start` reads it without waiting for the device

    def __init__(self, num_channels: int):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(num_channels))
        self.log_scale = nn.Parameter(torch.zeros(num_channels))
        self.register_buffer("is_started", torch.tensor(False))
        self.start = Start(self)

    @torch.no_grad()
    def begin(self, v: Tensor) -> None:
        rows = v.reshape(-1, v.shape[-1])
        self.shift.copy_(rows.mean(dim=0))
        self.log_scale.copy_(rows.std(dim=0, correction=0).clamp(min=SMALLEST_SCALE).log())
        self.start.done(self.is_started)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        if self.training and self.start.is_due:
            self.begin(v)
        return (v - self.shift) * torch.exp(-self.log_scale), -self.log_det(v)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        return z * torch.exp(self.log_scale) + self.shift, self.log_det(z)

    def log_det(self, v: Tensor) -> Tensor:
        return (num_positions(v) * self.log_scale.sum()).expand(len(v))
