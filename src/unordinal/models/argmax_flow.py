"""Argmax flows, and every flow on discrete data: a surjection over a density."""

from typing import Any

import torch
from torch import Tensor, nn

from unordinal.flows.actnorm import ActNorm
from unordinal.flows.density import Density
from unordinal.model import CategoricalModel
from unordinal.surjections.surjection import Surjection


class ArgmaxFlow(CategoricalModel):
    """P(x) = integral of p(v) over the v that quantise to x, bounded with q(v | x) (section 3).

    `density` is p(v), `surjection` holds q(v | x) and quantises, `context` reads what q is to know off the whole of x.

    >>> from unordinal.flows.density import StandardLogistic, StandardNormal
    >>> from unordinal.surjections.cartesian import BinaryProduct
    >>> model = ArgmaxFlow(BinaryProduct(4, StandardLogistic((2,))), StandardNormal((8, 2)), event_shape=(8,))
    >>> model.sample(3).shape
    torch.Size([3, 8])
    """

    def __init__(
        self,
        surjection: Surjection,
        density: Density,
        *,
        event_shape: tuple[int, ...],
        context: nn.Module | None = None,
    ):
        super().__init__(surjection.num_classes, event_shape)
        channels = (getattr(density, "event_shape", None) or (surjection.num_channels,))[-1]
        if channels != surjection.num_channels:
            raise ValueError(
                f"the surjection gives {surjection.num_channels} channels for {surjection.num_classes} classes, "
                f"but the density has {channels}"
            )
        self.surjection, self.density, self.context = surjection, density, context

    @property
    def has_invalid(self) -> bool:
        """Whether samples may hold codes that mean no class, numbers >= num_classes."""
        return self.surjection.has_invalid

    def log_weight(self, x: Tensor) -> Tensor:
        """log p(v) - log q(v | x) for one v ~ q(v | x) per example: (B, *D) -> (B,) (Alg. 2)."""
        self.check_classes(x)
        v, log_q = self.surjection.lift(x, None if self.context is None else self.context(x))
        return self.density.log_prob(v) - log_q

    def elbo(self, x: Tensor) -> Tensor:
        return self.log_weight(x)

    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:  # noqa: ARG002
        return -self.log_weight(x)

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        """Let the parts that start from data (Gumbel locations, ActNorm) see a first batch."""
        self.check_classes(x)
        was_training = self.training
        self.train()
        v, _ = self.surjection.lift(x, None if self.context is None else self.context(x))
        if any(isinstance(part, ActNorm) for part in self.density.modules()):
            self.density.log_prob(v)
        self.train(was_training)

    @torch.no_grad()
    def sample(self, num_samples: int, *, generator: torch.Generator | None = None, **settings: Any) -> Tensor:
        """Draw v ~ p(v) and quantise (Alg. 1): (N, *D); codes that mean no class stay, as numbers >= num_classes."""
        shape = torch.Size(settings.pop("event_shape", None) or self.event_shape)
        if settings:
            raise ValueError(f"a flow's samples have no setting {', '.join(settings)}")
        if num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, got {num_samples}")
        if len(shape) != len(self.event_shape) or min(shape) < 1:
            raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(self.event_shape)}")
        v, _ = self.density.sample(
            num_samples, event_shape=(*shape, self.surjection.num_channels), generator=generator
        )
        return self.surjection.quantize(v)
