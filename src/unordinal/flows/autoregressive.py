"""Flows that are autoregressive over the positions of a sequence and over the channels of each position."""

from collections.abc import Callable
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn

from unordinal.flows.bijection import Bijection
from unordinal.flows.density import Flow, StandardLogistic
from unordinal.flows.elementwise import ElementwiseTransform, LogisticMixture
from unordinal.flows.fixed_point import causal_fixed_point
from unordinal.numerics import Rng, sum_except_batch
from unordinal.progress import current_watcher


class CausalNet(Protocol):
    """The interface of a network whose features at a position depend only on earlier positions.

    It computes all positions at once when it is called, or one position after another with `step`.
    """

    def __call__(self, v: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return the features of every position, (B, L, C) -> (B, L, W)."""

    def init_state(self, batch: int) -> Any:
        """Return the state before the first position."""

    def step(self, v_before: Tensor | None, state: Any, cond: Tensor | None = None) -> tuple[Tensor, Any]:
        """Return the features (B, W) of the next position and the new state, given v (B, C) of the position before it.

        `v_before` is None for the first position.
        """


Invert = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


class TimeFlow(Bijection):
    """A flow over sequences that is autoregressive over positions.

    The channels of every position pass through a bijection whose condition is computed from all earlier positions.
    `forward` is one pass over the sequence. `inverse` computes one position after another.

    Args:
        net: a causal network, such as `CausalLSTM` or `CausalTransformer`, from (B, L, C) to features (B, L, W).
        inner: the bijection applied at every position; the features are its condition.
        is_parallel: compute `inverse` by repeated passes over the whole sequence until they converge, and step by step
            only where they do not converge soon. This is faster for a flow that is trained in this direction, such as
            an inverse autoregressive flow.

    >>> from unordinal.flows.elementwise import Affine, Elementwise
    >>> from unordinal.nets.recurrent import CausalLSTM
    >>> inner = Elementwise(Affine(), num_channels=3, net=nn.Linear(8, 3 * Affine.num_parameters))
    >>> flow, v = TimeFlow(CausalLSTM(3, width=8), inner), torch.randn(2, 5, 3)
    >>> z, log_det = flow(v)
    >>> torch.allclose(flow.inverse(z)[0], v, atol=1e-4)
    True
    """

    MOST_PASSES = 24  # if this many do not converge, positions depend strongly on each other, and steps are faster

    def __init__(self, net: nn.Module, inner: Bijection, *, is_parallel: bool = False):
        super().__init__()
        self.net, self.inner, self.is_parallel = net, inner, is_parallel

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        out: tuple[Tensor, Tensor] = self.inner(v, self.net(v, cond))
        return out

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        # In training, all passes must use the same dropout, which these devices allow.
        can_repeat = not self.training or z.device.type in ("cpu", "cuda")
        return self.inverse_by_passes(z, cond) if self.is_parallel and can_repeat else self.inverse_by_steps(z, cond)

    def inverse_by_steps(self, z: Tensor, cond: Tensor | None, invert: Invert | None = None) -> tuple[Tensor, Tensor]:
        """Compute the inverse one position after another.

        Args:
            z: noise, of shape (B, L, C).
            cond: condition, of shape (B, L, H).
            invert: a function of one position of z (B, 1, C) and its features (B, 1, W) that returns v (B, 1, C) and
                a number per example to add up, (B,). Default: the inverse of `inner`.

        Returns:
            v, of shape (B, L, C), and the sum over positions of the second value of `invert`, of shape (B,).
        """
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

    def inverse_by_passes(self, z: Tensor, cond: Tensor | None) -> tuple[Tensor, Tensor]:
        """Compute the inverse by repeated passes over all positions, or step by step if they do not converge."""
        devices = [z.device] if z.device.type == "cuda" else []

        def one_pass(v: Tensor) -> Tensor:
            with torch.random.fork_rng(devices, enabled=self.training):  # the same dropout in every pass
                return self.inner.inverse(z, self.net(v, cond))[0]

        v = causal_fixed_point(one_pass, z, most=self.MOST_PASSES)
        return self.inverse_by_steps(z, cond) if v is None else (v, -self(v, cond)[1])


class ChannelAutoregressive(Bijection):
    """A bijection of the channels of a position that is autoregressive over channels.

    Each channel passes through an elementwise transformation whose parameters depend on the channels before it and on
    the condition, which is required.

    Args:
        head: the network that computes the parameters, with the interface of `unordinal.nets.channels.ChannelNet`.
        transform: the elementwise transformation.
        num_channels: the number of channels C.

    >>> from unordinal.flows.elementwise import Affine
    >>> from unordinal.nets.channels import ChannelNet
    >>> layer = ChannelAutoregressive(ChannelNet(8, 3, Affine.num_parameters, width=4), Affine(), num_channels=3)
    >>> v, features = torch.randn(2, 5, 3), torch.randn(2, 5, 8)
    >>> z, log_det = layer(v, features)
    >>> torch.allclose(layer.inverse(z, features)[0], v, atol=1e-5)
    True
    """

    index: Tensor

    def __init__(self, head: nn.Module, transform: ElementwiseTransform, *, num_channels: int):
        super().__init__()
        self.head, self.transform, self.num_channels = head, transform, num_channels
        self.start = nn.Parameter(transform.start().repeat(num_channels, 1))  # (C, P)
        self.register_buffer("index", torch.arange(num_channels).unsqueeze(1), persistent=False)  # (C, 1)

    def forward(self, v: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        parameters = self.head(cond, v) + self.start  # (B, *D, C, P)
        z, log_slope = self.transform.forward(v, parameters)
        return z, sum_except_batch(log_slope)

    def inverse(self, z: Tensor, cond: Tensor | None = None) -> tuple[Tensor, Tensor]:
        v, parameters = self.channel_by_channel(z, cond, lambda part, p: self.transform.inverse(part, p)[0])
        return v, -sum_except_batch(self.transform.forward(v, parameters)[1])

    def channel_by_channel(
        self, z: Tensor, cond: Tensor | None, find: Callable[[Tensor, Tensor], Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Compute v one channel after another.

        Args:
            z: noise, of shape (B, *D, C).
            cond: features, of shape (B, *D, W).
            find: a function of one channel of z (B, *D) and its parameters (B, *D, P) that returns this channel of v.

        Returns:
            v, of shape (B, *D, C), and the parameters of all channels, of shape (B, *D, C, P).
        """
        head: Any = self.head
        hidden, v, used = head.prepare(cond), torch.zeros_like(z), []  # v is filled channel by channel
        for channel in range(self.num_channels):
            used.append(head.step(hidden, v, channel) + self.start[channel])  # (B, *D, P)
            v = v.index_copy(-1, self.index[channel], find(z[..., channel], used[-1]).unsqueeze(-1))
        return v, torch.stack(used, dim=-2)


class AutoregressiveMixture(Flow):
    """A density over sequences in which every value has a mixture of logistics as its conditional distribution.

    The parameters of the mixture depend on all earlier positions and on the earlier channels of the same position. As
    a flow with standard logistic noise, its inverse is found by iteration. Sampling needs no inverse: it draws a
    component of the mixture and then a logistic.

    Args:
        net: a causal network from (B, L, C) to features (B, L, W).
        head: the network that computes the parameters, with the interface of `unordinal.nets.channels.ChannelNet`.
        transform: the mixture of logistics.
        event_shape: (L, C).
    """

    def __init__(self, net: nn.Module, head: nn.Module, transform: LogisticMixture, *, event_shape: tuple[int, int]):
        inner = ChannelAutoregressive(head, transform, num_channels=event_shape[1])
        super().__init__(TimeFlow(net, inner), StandardLogistic(event_shape))

    def sample(
        self, num: int, cond: Tensor | None = None, *, event_shape: tuple[int, ...] | None = None, generator: Rng = None
    ) -> tuple[Tensor, Tensor]:
        flow, base = self.bijection, self.base
        assert isinstance(flow, TimeFlow)
        assert isinstance(flow.inner, ChannelAutoregressive)
        assert isinstance(base, StandardLogistic)
        inner, family = flow.inner, cast(LogisticMixture, flow.inner.transform)

        def draw(z: Tensor, features: Tensor) -> tuple[Tensor, Tensor]:
            v, parameters = inner.channel_by_channel(z, features, lambda part, p: family.draw(part, p, generator))
            value, log_slope = family.forward(v, parameters)
            return v, sum_except_batch(base.log_density(value) + log_slope)

        z, _ = base.sample(num, event_shape=event_shape, generator=generator)
        return flow.inverse_by_steps(z, cond, draw)
