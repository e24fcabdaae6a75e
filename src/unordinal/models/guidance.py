"""Guidance of an autoregressive network by labels: a class c is drawn from p(c | before)^(1-g) p(c | before, y)^g.

Every position is normalised by itself, so that samples are not those of p(x)^(1-g) p(x | y)^g, normalised over all x.
"""

from typing import Any

import torch
from torch import Tensor

from unordinal.numerics import tempered


class GuidedSteps:
    """Steps of a causal network with and without its labels, side by side.

    Args:
        net: the network, with `init_state`, `step` and `select_state`.
        dropped: the labels (J,) that stand for dropped ones.
        guidance: g; 0 is the network without labels and 1 the one with labels.
    """

    def __init__(self, net: Any, dropped: Tensor, guidance: float):
        self.net, self.dropped, self.guidance = net, dropped, guidance

    def init_state(self, batch: int, cond: Tensor) -> Any:
        """Return the states before the first position, with the labels (B, J) and without them."""
        return [self.net.init_state(batch, given) for given in (self.dropped.expand_as(cond), cond)]

    def step(self, before: Tensor | None, states: Any) -> tuple[Tensor, Any]:
        """Return the guided log-probabilities (B, K) of the next position, and the new states."""
        (free, first), (own, second) = (self.net.step(before, state) for state in states)
        mixed = tempered(torch.log_softmax(free, dim=-1), torch.log_softmax(own, dim=-1), self.guidance)
        return mixed, [first, second]

    def select_state(self, states: Any, index: Tensor) -> Any:
        """Return the states of some rows of the batch."""
        return [self.net.select_state(state, index) for state in states]
