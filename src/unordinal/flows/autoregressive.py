"""Flows that are autoregressive over time and, inside a position, over channels."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.flows.elementwise import ElementwiseMap
from unordinal.flows.fixed_point import causal_fixed_point
from unordinal.numerics import sum_except_batch


class CausalNet(Protocol):
    """A network whose features at a position depend on earlier positions only, in whole or step by step."""

    def __call__(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Features of every position: (B, L, C) -> (B, L, W)."""

    def init_state(self, batch: int) -> Any:
        """The state before the first position."""

    def step(self, v_before: Tensor | None, state: Any, cond: Tensor | None = None) -> tuple[Tensor, Any]:
        """Features (B, W) of the next position, given the one before it (B, C), None at the first; and the state."""


class TimeFlow(Bijection):
    """At every position a bijection of its channels, set by all earlier positions.

    `net` is a CausalNet whose features are the condition of `inner`. `forward` is one pass. `inverse` takes one step
    per position, O(L) where a whole pass for each would be O(L^2); or with `is_parallel` a few whole passes, if they
    settle, which is what a training needs that runs in this direction (inverse autoregressive, by `Inverse`).
    """

    MOST_PASSES = 24  # after which steps are taken: positions depend on each other too much

    def __init__(self, net: nn.Module, inner: Bijection, *, is_parallel: bool = False):
        super().__init__()
        self.net, self.inner, self.is_parallel = net, inner, is_parallel
        self.advance: Callable[[float], None] | None = None  # told of each position that `inverse` has done

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.inner(v, self.net(v, cond))
        return out

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.by_passes(z, cond) if self.is_parallel else self.by_steps(z, cond)

    def by_steps(self, z: Tensor, cond: Tensor | None) -> tuple[Tensor, Tensor]:
        net: Any = self.net
        state, before = net.init_state(len(z)), None
        positions, total = [], z.new_zeros(len(z))
        for place in range(z.shape[1]):
            features, state = net.step(before, state, None if cond is None else cond[:, place])  # (B, W)
            v, log_det = self.inner.inverse(z[:, place : place + 1], features.unsqueeze(1))
            before = v.squeeze(1)
            positions.append(before)
            total = total + log_det
            if self.advance is not None:
                self.advance(len(z))
        return torch.stack(positions, dim=1), total

    def by_passes(self, z: Tensor, cond: Tensor | None) -> tuple[Tensor, Tensor]:
        devices = [z.device] if z.device.type == "cuda" else []

        def one_pass(v: Tensor) -> Tensor:
            with torch.random.fork_rng(devices, enabled=self.training):  # the same dropout in every pass
                return self.inner.inverse(z, self.net(v, cond))[0]

        v = causal_fixed_point(one_pass, z, most=self.MOST_PASSES)
        return self.by_steps(z, cond) if v is None else (v, -self(v, cond)[1])


class ChannelAutoregressive(Bijection):
    """Inside a position: each channel through a map set by those before it and by `cond` (B, *D, W), the features.

    `head` turns both into the map's parameters (nets/channels.py), all channels at once or one after another.
    """

    index: Tensor

    def __init__(self, head: nn.Module, map_: ElementwiseMap, *, num_channels: int):
        super().__init__()
        self.head, self.map, self.num_channels = head, map_, num_channels
        self.start = nn.Parameter(map_.start().repeat(num_channels, 1))  # (C, P)
        self.register_buffer("index", torch.arange(num_channels).unsqueeze(1), persistent=False)  # (C, 1)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        parameters = self.head(cond, v) + self.start  # (B, *D, C, P)
        z, log_slope = self.map.forward(v, parameters)
        return z, sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        head: Any = self.head
        hidden = head.prepare(cond)
        v, total = torch.zeros_like(z), torch.zeros_like(z[..., 0])  # v is filled channel by channel
        for channel in range(self.num_channels):
            parameters = head.step(hidden, v, channel) + self.start[channel]  # (B, *D, P)
            found, log_slope = self.map.inverse(z[..., channel], parameters)
            v = v.index_copy(-1, self.index[channel], found.unsqueeze(-1))
            total = total + log_slope
        return v, sum_except_batch(total)
