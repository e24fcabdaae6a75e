"""Categorical normalizing flows (Lippe and Gavves 2020): classes as overlapping logistics, decoded by Bayes' rule."""

from typing import Any

import torch
from torch import Tensor, nn

from unordinal.flows.density import ConditionalLogistic, StandardLogistic
from unordinal.numerics import one_hot


class OneHot(nn.Module):
    """Classes as one-hots: (B, *D) -> (B, *D, K)."""

    like: Tensor

    def __init__(self, num_classes: int):
        super().__init__()
        self.num_classes = num_classes
        self.register_buffer("like", torch.empty(0), persistent=False)  # carries the dtype

    def forward(self, x: Tensor) -> Tensor:
        return one_hot(x, self.num_classes, self.like.dtype)


class ClassLogistics(nn.Module):
    """Mean and log-scale of each class's logistic, from its one-hot: (B, *D, K) -> (B, *D, 2 C)."""

    SPREAD = 2.0  # of the first means

    def __init__(self, num_classes: int, num_channels: int):
        super().__init__()
        self.mean = nn.Parameter(self.SPREAD * torch.randn(num_classes, num_channels))
        self.log_scale = nn.Parameter(torch.full((num_classes, num_channels), -1.0))

    def forward(self, classes: Tensor) -> Tensor:
        return classes @ torch.cat([self.mean, self.log_scale], dim=-1)


class BayesDecoder(nn.Module):
    """log p(x | v) up to a constant: log p(x) + log q(v | x), for the encoder's own q: (B, *D, C) -> (B, *D, K).

    Position by position: what positions know of each other is the prior's matter.
    """

    def __init__(self, logistics: ClassLogistics):
        super().__init__()
        self.shared = (logistics,)  # the posterior owns these weights; in a tuple they are not registered twice
        self.noise = StandardLogistic(())
        self.log_prior = nn.Parameter(torch.zeros(len(logistics.mean)))

    def forward(self, v: Tensor) -> Tensor:
        (logistics,) = self.shared
        log_q = self.noise.scaled_log_density(v.unsqueeze(-2), logistics.mean, logistics.log_scale)  # (.., K, C)
        return torch.log_softmax(self.log_prior, dim=-1) + log_q.sum(dim=-1)


def encoding(num_classes: int, num_channels: int) -> dict[str, Any]:
    """Context, posterior and decoder that make a `LatentFlow` a categorical normalizing flow, by argument."""
    logistics = ClassLogistics(num_classes, num_channels)
    parts = {"context": OneHot(num_classes), "posterior": ConditionalLogistic(logistics)}
    return {**parts, "decoder": BayesDecoder(logistics)}
