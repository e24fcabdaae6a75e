"""Activation normalisation: a learned shift and scale per channel, initialised from the first batch."""

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection, num_positions
from unordinal.flows.init_flag import InitFlag

SMALLEST_SCALE = 1e-6  # guards the logarithm where a channel is constant in the first batch


class ActNorm(Bijection):
    """Shift and scale each channel by learned amounts: z = (v - shift) exp(-log_scale).

    The first batch in training mode sets the shift and the scale such that every channel of this batch has mean 0 and
    variance 1 (Kingma and Dhariwal 2018).

    Args:
        num_channels: the number of channels C.

    >>> norm = ActNorm(3).train()
    >>> z, log_det = norm(5 + 2 * torch.randn(64, 10, 3))
    >>> torch.allclose(z.mean((0, 1)), torch.zeros(3), atol=1e-4)
    True
    """

    is_started: Tensor  # saved with the weights; `InitFlag` mirrors it, so that no step waits for the device

    def __init__(self, num_channels: int):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(num_channels))
        self.log_scale = nn.Parameter(torch.zeros(num_channels))
        self.register_buffer("is_started", torch.tensor(False))
        self.init_flag = InitFlag(self)

    @torch.no_grad()
    def initialise(self, v: Tensor) -> None:
        """Set shift and scale such that v, of shape (B, *D, C), is standardised per channel."""
        rows = v.reshape(-1, v.shape[-1])
        self.shift.copy_(rows.mean(dim=0))
        self.log_scale.copy_(rows.std(dim=0, correction=0).clamp(min=SMALLEST_SCALE).log())
        self.init_flag.mark_done(self.is_started)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if self.training and self.init_flag.is_pending:
            self.initialise(v)
        return (v - self.shift) * torch.exp(-self.log_scale), -self.log_det(v)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return z * torch.exp(self.log_scale) + self.shift, self.log_det(z)

    def log_det(self, v: Tensor) -> Tensor:
        """Return the log-determinant of `inverse`, of shape (B,)."""
        return (num_positions(v) * self.log_scale.sum()).expand(len(v))
