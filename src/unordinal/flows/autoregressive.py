"""A flow that is autoregressive over time and, inside a position, over channels."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.flows.coupling import Coupling
from unordinal.flows.elementwise import ElementwiseMap
from unordinal.numerics import sum_except_batch


class CausalNet(Protocol):
    """A network whose features at a position depend on earlier positions only, in whole or step by step."""

    def __call__(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Features of every position: (B, L, C) -> (B, L, W)."""

    def init_state(self, batch: int) -> Any:
        """The state before the first position."""

    def step(self, v_before: Tensor | None, state: Any, cond: Tensor | None = None) -> tuple[Tensor, Any]:
        """Features (B, W) of the next position, given the one before it (B, C), None at the first; and the state."""


class TimeCoupling(Bijection):
    """At every position a coupling of its channels, set by all earlier positions.

    `net` is a CausalNet whose features are the condition of `coupling`. `forward` is one pass; `inverse` one step per
    position, all channels at once. Wrapped in `Inverse` it is inverse autoregressive in time: one pass to sample.
    """

    def __init__(self, net: nn.Module, coupling: Coupling):
        super().__init__()
        self.net, self.coupling = net, coupling

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.coupling(v, self.net(v, cond))
        return out

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        net: Any = self.net
        state, before = net.init_state(len(z)), None
        positions, total = [], z.new_zeros(len(z))
        for place in range(z.shape[1]):
            features, state = net.step(before, state, None if cond is None else cond[:, place])  # (B, W)
            v, log_det = self.coupling.inverse(z[:, place : place + 1], features.unsqueeze(1))
            before = v.squeeze(1)
            positions.append(before)
            total = total + log_det
        return torch.stack(positions, dim=1), total


class Autoregressive(Bijection):
    """Each number through a map set by all earlier positions and by the earlier channels of its own.

    `net` is a CausalNet, `head` turns its features and the position's own channels into the map's parameters
    (nets/channels.py). `forward` is one pass; `inverse` makes one network step per position and one small step per
    channel: O(L), where a whole pass per position and channel would be O(L^2 C).
    """

    index: Tensor

    def __init__(self, net: nn.Module, head: nn.Module, map_: ElementwiseMap, *, num_channels: int):
        super().__init__()
        self.net, self.head, self.map, self.num_channels = net, head, map_, num_channels
        self.start = nn.Parameter(map_.start().repeat(num_channels, 1))  # (C, P)
        self.advance: Callable[[float], None] | None = None  # told of each position that `inverse` has done
        self.register_buffer("index", torch.arange(num_channels).unsqueeze(1), persistent=False)  # (C, 1)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        parameters = self.head(self.net(v, cond), v) + self.start  # (B, L, C, P)
        z, log_slope = self.map.forward(v, parameters)
        return z, sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        net: Any = self.net
        head: Any = self.head
        state, before = net.init_state(len(z)), None
        assert z.shape[-1] == self.num_channels
        positions, total = [], z.new_zeros(len(z))
        for place in range(z.shape[1]):
            features, state = net.step(before, state, None if cond is None else cond[:, place])  # (B, W)
            hidden = head.prepare(features)
            before = z.new_zeros(len(z), self.num_channels)  # (B, C), filled channel by channel
            for channel in range(self.num_channels):
                parameters = head.step(hidden, before, channel) + self.start[channel]  # (B, P)
                v, log_slope = self.map.inverse(z[:, place, channel], parameters)
                before = before.index_copy(1, self.index[channel], v.unsqueeze(1))
                total = total + log_slope
            positions.append(before)
            if self.advance is not None:
                self.advance(len(z))
        return torch.stack(positions, dim=1), total
