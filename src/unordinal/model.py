"""The one interface that every model of this library has."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unordinal.abilities import Denoiser, Network, Orders, Reconstruct, Stepper, Times, TrainingHooks, Weights
from unordinal.numerics import Rng


class CategoricalModel(nn.Module, ABC):
    """A distribution over arrays of classes: P(x) for x of shape `event_shape` with entries 0, ..., num_classes - 1.

    Losses and bounds draw from torch's default generator; `sample` takes one. Scores and samples do not depend on
    whether the model is in training mode. docs/extending.md shows a model of your own.

    Args:
        num_classes: the number of classes K.
        event_shape: the shape of one example.
        is_exact: whether `elbo` is log P(x) itself.
        side_multiple: what every side of an example must be a multiple of.
    """

    def __init__(
        self,
        num_classes: int,
        event_shape: tuple[int, ...] | torch.Size,
        *,
        is_exact: bool = False,
        side_multiple: int = 1,
    ):
        super().__init__()
        if num_classes < 2:
            raise ValueError(f"a model needs at least 2 classes, got {num_classes}")
        self.num_classes = num_classes
        self.event_shape = torch.Size(event_shape)
        self.side_multiple = side_multiple
        self.is_exact = is_exact

    has_invalid_codes = False
    """Whether samples may hold numbers >= num_classes, codes that stand for no class."""

    @property
    def stepper(self) -> Stepper | None:
        """Draws one position after another; autoregressive models."""
        return None

    @property
    def denoiser(self) -> Denoiser | None:
        """Draws samples by removing noise; diffusions."""
        return None

    @property
    def times(self) -> Times | None:
        """The bound at chosen times; diffusions."""
        return None

    @property
    def orders(self) -> Orders | None:
        """The likelihood of a given order of positions; models that can draw positions in any order."""
        return None

    @property
    def weights(self) -> Weights | None:
        """Importance weights, for the importance-weighted bound."""
        return None

    @property
    def reconstruct(self) -> Reconstruct | None:
        """Sends examples through the model and back; models that lose something on the way."""
        return None

    @property
    def network(self) -> Network | None:
        """The network by itself, for models that have a single one."""
        return None

    @property
    def hooks(self) -> TrainingHooks:
        """What a training loop does for this model besides minimising its loss."""
        return TrainingHooks()

    @abstractmethod
    def training_loss(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        """Compute what training minimises: (B, *D) classes, which are not checked -> (B,) nats.

        `draw` is what `hooks.draw` gave for this batch (diffusion's times, say); without it the loss draws for itself.
        """

    @abstractmethod
    def elbo(self, x: Tensor, *, generator: Rng = None) -> Tensor:
        """Return an unbiased estimate of a lower bound on log P(x), without side effects: (B, *D) -> (B,) nats."""

    @abstractmethod
    def sample(
        self, num_samples: int, *, generator: Rng = None, event_shape: tuple[int, ...] | None = None, **settings: Any
    ) -> Tensor:
        """Draw from the model: (N, *D) classes. `settings` are the model's own; others raise an error by name."""

    def checked_known(self, given: Any, num_samples: int, shape: torch.Size) -> Tensor:
        """Validate `known`, classes or -1 where a position is free, and expand it to (N, *D)."""
        known = as_classes(given, "known")
        if known.is_floating_point() or tuple(known.shape) not in (tuple(shape), (num_samples, *shape)):
            expected = f"{tuple(shape)} or {(num_samples, *shape)}"
            got = f"{known.dtype} of shape {tuple(known.shape)}"
            raise ValueError(f"`known` must hold integers of shape {expected}, got {got}")
        low, high = int(known.min()), int(known.max())
        if low < -1 or high >= self.num_classes:
            wrong = low if low < -1 else high
            raise ValueError(f"`known` has class {wrong}; expected 0 to {self.num_classes - 1}, or -1 where it is free")
        known = known.long().expand(num_samples, *shape)
        if not bool((known < 0).flatten(1).any(dim=1).all()):
            raise ValueError("`known` leaves nothing free; put -1 where positions are to be drawn")
        return known

    def forward(self, x: Tensor, draw: Tensor | None = None) -> Tensor:
        return self.training_loss(x, draw)

    def __repr__(self) -> str:
        shape, parameters = " x ".join(map(str, self.event_shape)), sum(p.numel() for p in self.parameters())
        kind = "exact likelihood" if self.is_exact else "a bound on the likelihood"
        of = f"examples of {shape}, {self.num_classes} classes"
        return f"{type(self).__name__}: {of}, {parameters:,} parameters, {kind}"

    def bits_per_dim(self, x: Tensor) -> Tensor:
        """Return bits per position: minus the ELBO (minus log P(x) if `is_exact`) over the number of positions, (B,).

        For a bound this is one draw for each example, which is noise by itself; `unordinal.score` averages enough.
        """
        return -self.elbo(x) / (math.log(2) * x[0].numel())


class ExactModel(CategoricalModel):
    """A model whose `log_prob` is log P(x) itself: the bound and the importance weight are the same number.

    A subclass gives `unchecked_log_prob`, `training_loss` and `sample`; docs/extending.md has one in full.

    Args:
        num_classes: the number of classes K.
        event_shape: the shape of one example.
        side_multiple: what every side of an example must be a multiple of.
    """

    def __init__(self, num_classes: int, event_shape: tuple[int, ...] | torch.Size, *, side_multiple: int = 1):
        super().__init__(num_classes, event_shape, is_exact=True, side_multiple=side_multiple)

    @abstractmethod
    def unchecked_log_prob(self, x: Tensor) -> Tensor:
        """Return log P(x) of classes that were checked: (B, *D) int64 -> (B,) nats."""

    def log_prob(self, x: Tensor) -> Tensor:
        """Return the exact log-probability, without dropout: (B, *D) -> (B,) nats."""
        check_classes(self, x)
        with evaluating(self):
            return self.unchecked_log_prob(x.long())

    def elbo(self, x: Tensor, *, generator: Rng = None) -> Tensor:
        """Return `log_prob`; there is no gap."""
        return self.log_prob(x)


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Switch to evaluation mode, then restore the mode of each module."""
    trained = [part for part in model.modules() if part.training]
    for part in trained:
        part.training = False
    try:
        yield
    finally:
        for part in trained:
            part.training = True


def device_of(model: nn.Module) -> torch.device:
    """Return the device of a model's weights."""
    weight = next(model.parameters(), None)
    return torch.device("cpu") if weight is None else weight.device


def as_classes(values: Any, name: str) -> Tensor:
    """Return a tensor, an array or a nested list as a tensor; `name` is what error messages call it."""
    if isinstance(values, Tensor):
        return values
    try:
        return torch.from_numpy(np.array(values))  # a copy: torch warns of arrays that cannot be written to
    except (ValueError, TypeError) as error:
        expected = "an array of integer classes, or lists of equal length"
        raise ValueError(f"`{name}` must be {expected}, got {type(values).__name__}") from error


def check_classes(model: CategoricalModel, x: Tensor) -> None:
    """Raise a ValueError if x is not a batch of this model's data.

    It reads the values, so training losses do not call it. Tensors on the meta device have no values to read.
    """
    if x.is_floating_point() or x.is_complex() or x.dtype == torch.bool:
        raise ValueError(f"x has dtype {x.dtype}; expected integer classes")
    if x.dim() != 1 + len(model.event_shape) or x.numel() == 0:
        expected = ", ".join(map(str, model.event_shape))
        raise ValueError(f"x has shape {tuple(x.shape)}; expected (batch, {expected})")
    check_sides(model, tuple(x.shape[1:]))
    if x.device.type == "meta":
        return
    low, high = (int(v) for v in torch.aminmax(x))
    if low < 0 or high >= model.num_classes:
        wrong = low if low < 0 else high
        raise ValueError(
            f"x has class {wrong}, but num_classes={model.num_classes}; was it encoded with this model's vocabulary?"
        )


def check_sides(model: CategoricalModel, shape: tuple[int, ...]) -> None:
    """Raise a ValueError if a side is not a multiple of `side_multiple`."""
    if any(side % model.side_multiple for side in shape):
        raise ValueError(f"this model needs sides that are multiples of {model.side_multiple}, got {shape}")


def sample_shape(
    model: CategoricalModel, num_samples: int, event_shape: tuple[int, ...] | None, unknown: dict[str, object]
) -> torch.Size:
    """Validate the settings that all models share and return the shape of a sample; raise for `unknown` settings."""
    if unknown:
        raise ValueError(f"sampling from {type(model).__name__} has no setting {', '.join(unknown)}")
    shape = torch.Size(model.event_shape if event_shape is None else event_shape)
    if not isinstance(num_samples, int) or num_samples < 1:
        raise ValueError(f"`num_samples` must be a whole number of at least 1, got {num_samples}")
    if len(shape) != len(model.event_shape) or min(shape) < 1:
        raise ValueError(f"a sample cannot have shape {tuple(shape)}; the model's is {tuple(model.event_shape)}")
    check_sides(model, tuple(shape))
    return shape
