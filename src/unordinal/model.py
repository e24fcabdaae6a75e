"""The one interface that every model of this library has."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn


class CategoricalModel(nn.Module, ABC):
    """A distribution over arrays of classes, P(x) for x of shape `event_shape` with entries 0..num_classes-1.

    Losses and bounds draw from torch's default generator; `sample` takes one.
    """

    def __init__(self, num_classes: int, event_shape: tuple[int, ...] | torch.Size, *, is_exact: bool = False):
        super().__init__()
        if num_classes < 2:
            raise ValueError(f"a model needs at least 2 classes, got {num_classes}")
        self.num_classes = num_classes
        self.event_shape = torch.Size(event_shape)
        self.side_multiple = 1  # what every side of an example must be a multiple of
        self.is_exact = is_exact

    @abstractmethod
    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        """What training minimises: (B, *D) classes -> (B,) nats.

        `draw` is what `self.draw` gave for this batch (diffusion's times, say); without it the loss draws for itself.
        """

    @abstractmethod
    def elbo(self, x: Tensor) -> Tensor:
        """An unbiased estimate of a lower bound on log P(x), without side effects: (B, *D) -> (B,) nats."""

    @abstractmethod
    def sample(self, num_samples: int, *, generator: torch.Generator | None = None, **settings: Any) -> Tensor:
        """Draw from the model: (N, *D) classes."""

    @property
    def has_invalid(self) -> bool:
        """Whether samples may hold numbers >= num_classes, codes that mean no class."""
        return False

    def log_weight(self, x: Tensor) -> Tensor:
        """An importance weight in log space, E[exp(log_weight)] = P(x): (B, *D) -> (B,). Not every model has one."""
        raise ValueError(f"{type(self).__name__} has no importance weight for {tuple(x.shape)}; use its elbo")

    def reconstruct(self, x: Tensor, *, generator: torch.Generator | None = None) -> Tensor:  # noqa: ARG002
        """What comes back of x from where the model takes it: (B, *D) -> (B, *D). Only where something may be lost."""
        raise ValueError(f"{type(self).__name__} gives {tuple(x.shape)} back as it is; there is nothing to reconstruct")

    def initialise(self, x: Tensor) -> None:
        """Set what starts from data by a first batch (B, *D); the training loop calls this once, before anything."""

    def progressed(self, fraction: float) -> None:
        """Told before each training step how much of the budget is used, 0 to 1; less again if the budget grows."""

    def draw(self, num: int) -> Tensor | None:  # noqa: ARG002
        """The random numbers of a batch that the loop should know of, because `observe` learns from them."""
        return None

    def observe(self, draw: Tensor | None, losses: Tensor) -> None:
        """Update running statistics from a batch's draw and losses (B,); the training loop calls this, no one else."""

    def forward(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        return self.training_loss(x, draw)

    def bits_per_dim(self, x: Tensor) -> Tensor:
        """Bits per position: minus the ELBO (minus log P(x) where `is_exact`) over the number of positions, (B,)."""
        return -self.elbo(x) / (math.log(2) * x[0].numel())

    def checked_shape(
        self, num_samples: int, event_shape: tuple[int, ...] | None, settings: dict[str, object], how: str
    ) -> torch.Size:
        """The shape of a sample, once all that was asked for is possible; `how` says how this model is sampled."""
        shape = torch.Size(self.event_shape if event_shape is None else event_shape)
        if settings:
            raise ValueError(f"{how}: it has no {', '.join(settings)}")
        if num_samples < 1:
            raise ValueError(f"num_samples must be at least 1, got {num_samples}")
        if len(shape) != len(self.event_shape) or min(shape) < 1:
            raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(self.event_shape)}")
        self.check_sides(shape)
        return shape

    def check_sides(self, shape: tuple[int, ...] | torch.Size) -> None:
        """Refuse an example that the network cannot halve as often as it must."""
        if any(side % self.side_multiple for side in shape):
            raise ValueError(f"this model needs sides that are multiples of {self.side_multiple}, got {tuple(shape)}")

    def check_classes(self, x: Tensor) -> None:
        """Reject what cannot be a batch of this model's data; called once, where data enter."""
        if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
            raise ValueError(f"x has dtype {x.dtype}; expected integer classes")
        if x.dim() != 1 + len(self.event_shape) or x.numel() == 0:
            raise ValueError(f"x has shape {tuple(x.shape)}; expected (batch, {', '.join(map(str, self.event_shape))})")
        self.check_sides(x.shape[1:])
        low, high = (int(v) for v in torch.aminmax(x))
        if low < 0 or high >= self.num_classes:
            wrong = low if low < 0 else high
            raise ValueError(
                f"x has class {wrong}, but num_classes={self.num_classes}; was it encoded with this model's vocabulary?"
            )


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Dropout and the like off for a while, then as it was."""
    was_training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
