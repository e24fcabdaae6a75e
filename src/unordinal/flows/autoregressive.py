"""Flows that are autoregressive over time and, inside a position, over channels."""

from collections.abc import Callable
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.flows.density import Flow, StandardLogistic
from unordinal.flows.elementwise import ElementwiseTransform, LogisticMixture
from unordinal.flows.fixed_point import causal_fixed_point
from unordinal.numerics import sum_except_batch
from unordinal.progress import current_watcher


class CausalNet(Protocol):
    """A network whose features at a position depend on earlier positions only, in whole or step by step."""

    def __call__(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Features of every position: (B, L, C) -> (B, L, W)."""

    def init_state(self, batch: int) -> Any:
        """The state before the first position."""

    def step(self, v_before: Tensor | None, state: Any, cond: Tensor | None = None) -> tuple[Tensor, Any]:
        """Features (B, W) of the next position, given the one before it (B, C), None at the first; and the state."""


Invert = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class TimeFlow(Bijection):
    """At every position a bijection of its channels, set by all earlier positions.

    `net` is a CausalNet whose features are the condition of `inner`. `forward` is one pass. `inverse` takes one step
    per position, which costs O(L); a whole pass for each would cost O(L^2). With `is_parallel` it repeats whole passes
    until nothing changes, and takes steps only where that does not happen soon. Inverse autoregressive flows are
    trained in this direction and need it.
    """

    MOST_PASSES = 24  # after which steps are taken: positions depend on each other too much

    def __init__(self, net: nn.Module, inner: Bijection, *, is_parallel: bool = False):
        super().__init__()
        self.net, self.inner, self.is_parallel = net, inner, is_parallel

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.inner(v, self.net(v, cond))
        return out

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        can_repeat = not self.training or z.device.type in (
            "cpu",
            "cuda",
        )  # where passes can share dropout
        return self.by_passes(z, cond) if self.is_parallel and can_repeat else self.by_steps(z, cond)

    def by_steps(self, z: Tensor, cond: Tensor | None, invert: Invert | None = None) -> tuple[Tensor, Tensor]:
        """Position by position, each through `inner`'s inverse or through a function of it and its features."""
        net, invert, watcher = cast(Any, self.net), invert or self.inner.inverse, current_watcher()
        state, before = net.init_state(len(z)), None
        positions, total = [], z.new_zeros(len(z))
        for place in range(z.shape[1]):
            features, state = net.step(before, state, None if cond is None else cond[:, place])  # (B, W)
            v, log_det = invert(z[:, place : place + 1], features.unsqueeze(1))
            before = v.squeeze(1)
            positions.append(before)
            total = total + log_det
            watcher.advance(len(z) / z.shape[1])
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

    def __init__(self, head: nn.Module, family: ElementwiseTransform, *, num_channels: int):
        super().__init__()
        self.head, self.transform, self.num_channels = head, family, num_channels
        self.start = nn.Parameter(family.start().repeat(num_channels, 1))  # (C, P)
        self.register_buffer("index", torch.arange(num_channels).unsqueeze(1), persistent=False)  # (C, 1)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        parameters = self.head(cond, v) + self.start  # (B, *D, C, P)
        z, log_slope = self.transform.forward(v, parameters)
        return z, sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        v, parameters = self.one_by_one(z, cond, lambda part, p: self.transform.inverse(part, p)[0])
        return v, -sum_except_batch(self.transform.forward(v, parameters)[1])

    def one_by_one(
        self, z: Tensor, cond: Tensor | None, find: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """v whose channels `find` gives from those of z and their parameters, and all parameters, (B, *D, C, P)."""
        head: Any = self.head
        hidden, v, used = head.prepare(cond), torch.zeros_like(z), []  # v is filled channel by channel
        for channel in range(self.num_channels):
            used.append(head.step(hidden, v, channel) + self.start[channel])  # (B, *D, P)
            v = v.index_copy(-1, self.index[channel], find(z[..., channel], used[-1]).unsqueeze(-1))
        return v, torch.stack(used, dim=-2)


class AutoregressiveMixture(Flow):
    """Every number from a mixture of logistics, set by all earlier positions and by the earlier channels of its own.

    As a flow to a standard logistic its inverse solves for every number. Drawing needs no solving: a component of the
    mixture, then its logistic.
    """

    def __init__(self, net: nn.Module, head: nn.Module, family: LogisticMixture, *, event_shape: tuple[int, int]):
        inner = ChannelAutoregressive(head, family, num_channels=event_shape[1])
        super().__init__(TimeFlow(net, inner), StandardLogistic(event_shape))

    def sample(
        self,
        num: int,
        cond: Tensor | None = None,
        *,
        event_shape: tuple[int, ...] | None = None,
        generator: torch.Generator | None = None,
    ) -> tuple[Tensor, Tensor]:
        flow, base = self.bijection, self.base
        assert isinstance(flow, TimeFlow)
        assert isinstance(flow.inner, ChannelAutoregressive)
        assert isinstance(base, StandardLogistic)
        inner, family = flow.inner, cast(LogisticMixture, flow.inner.transform)

        def draw(z: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
            v, parameters = inner.one_by_one(z, features, lambda part, p: family.draw(part, p, generator))
            value, log_slope = family.forward(v, parameters)
            return v, sum_except_batch(base.log_density(value) + log_slope)

        z, _ = base.sample(num, event_shape=event_shape, generator=generator)
        return flow.by_steps(z, cond, draw)
