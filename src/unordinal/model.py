"""The one interface that every model of this library has."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.abilities import (
    Blocks,
    Conditional,
    Denoiser,
    Marginals,
    Network,
    Orders,
    RandomOrder,
    Reconstruct,
    SamplerScores,
    Stepper,
    Times,
    TrainingHooks,
    Visits,
    WeightFactors,
    Weights,
)
from unordinal.checks import as_classes, check_classes, check_range
from unordinal.columns import Classes
from unordinal.numerics import Rng


class CategoricalModel(nn.Module, ABC):
    """A distribution over arrays of classes: P(x) for x of shape `event_shape` with entries 0, ..., num_classes - 1.

    Columns may have numbers of classes of their own. Examples may end early: all positions after the end then hold the
    number `num_classes`. Labels may be given with each example, as `cond`: (B, J) numbers, one for each label, in which
    the number of a label's classes (or -1) stands for a missing label; the model is then P(x | cond). Training drops
    the labels of some examples: without `cond`, the model is P(x) as learned from those.

    Losses and bounds draw from torch's default generator; `sample` takes one. Scores and samples do not depend on
    whether the model is in training mode. docs/extending.md shows a model of your own.

    Args:
        num_classes: the number of classes K, or one number for each column.
        event_shape: the shape of one example; the longest, if examples may end early.
        is_exact: whether `elbo` is log P(x) itself.
        side_multiple: what every side of an example must be a multiple of.
        ends: whether examples may end early.
        labels: the number of classes of each label that may be given with an example.
        has_places: whether each position has weights of its own, so that examples of other shapes are refused.
    """

    def __init__(
        self,
        num_classes: int | Sequence[int] | Classes,
        event_shape: tuple[int, ...] | torch.Size,
        *,
        is_exact: bool = False,
        side_multiple: int = 1,
        ends: bool = False,
        labels: tuple[int, ...] = (),
        has_places: bool = False,
    ):
        super().__init__()
        self.classes = Classes(num_classes)
        self.num_classes = self.classes.most
        self.event_shape = torch.Size(event_shape)
        self.side_multiple, self.is_exact, self.ends, self.labels = side_multiple, is_exact, ends, tuple(labels)
        self.has_places = has_places or bool(self.classes.columns)
        if self.classes.columns and (len(self.classes.columns),) != tuple(event_shape):
            num = len(self.classes.columns)
            raise ValueError(f"there are {num} columns of classes, but examples have shape {tuple(event_shape)}")
        if self.classes.columns and ends:
            raise ValueError("columns with numbers of classes of their own cannot end early")

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
    def sampler_scores(self) -> SamplerScores | None:
        """The likelihood of samplers that show positions in an order that they choose themselves; masked models."""
        return None

    @property
    def random_order(self) -> RandomOrder | None:
        """The likelihood of drawing positions one by one in random order; models with small blocks of positions."""
        return None

    @property
    def marginals(self) -> Marginals | None:
        """The likelihood of some positions, with the others summed out; such models also draw given any positions."""
        return None

    @property
    def conditional(self) -> Conditional | None:
        """The distribution of one position given some others, with the rest summed out."""
        return None

    @property
    def visits(self) -> Visits | None:
        """Visits one position after another in a fixed order, for coding; models that can predict them so."""
        return None

    @property
    def blocks(self) -> Blocks | None:
        """The same model with blocks of other sizes; models that draw blocks of positions one after another."""
        return None

    @property
    def weights(self) -> Weights | None:
        """Importance weights, for the importance-weighted bound."""
        return None

    @property
    def weight_factors(self) -> WeightFactors | None:
        """Importance weights of factors of P(x), such as blocks; their bounds are closer than those of `weights`."""
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
    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        """Compute what training minimises: (B, *D) classes, which are not checked -> (B,) nats.

        `draw` is what `hooks.draw` gave for this batch (diffusion's times, say); without it the loss draws for itself.
        """

    @abstractmethod
    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return an unbiased estimate of a lower bound on log P(x), without side effects: (B, *D) -> (B,) nats.

        A model without labels need not have the argument `cond`.
        """

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
        if (low := int(known.min())) < -1:
            raise ValueError(f"`known` has class {low}; expected 0 to {self.num_classes - 1}, or -1 where it is free")
        known = known.long().expand(num_samples, *shape)
        check_range(self.classes, known, "`known`", f"; expected 0 to {self.num_classes - 1}, or -1 where it is free")
        if not bool((known < 0).flatten(1).any(dim=1).all()):
            raise ValueError("`known` leaves nothing free; put -1 where positions are to be drawn")
        return known

    def checked_cond(self, given: Any, num: int) -> Tensor | None:
        """Validate labels, (J,) or (N, J), and expand them to (N, J); without any, all labels are dropped."""
        if given is not None and not self.labels:
            raise ValueError("`cond` is for models that were trained with labels, and this model was not")
        if not self.labels:
            return None
        device, sizes = device_of(self), torch.tensor(self.labels)
        if given is None:
            return self.dropped_labels().expand(num, -1)
        cond = as_classes(given, "cond")
        cond = cond.reshape(-1, 1) if cond.dim() == 1 and len(sizes) == 1 else cond
        if cond.is_floating_point() or tuple(cond.shape) not in ((len(sizes),), (1, len(sizes)), (num, len(sizes))):
            got = f"{cond.dtype} of shape {tuple(cond.shape)}"
            raise ValueError(f"`cond` must hold integers of shape {(num, len(sizes))}, one for each label; got {got}")
        cond = torch.where(cond.cpu() < 0, sizes, cond.cpu()).long().expand(num, -1)
        if bool((cond > sizes).any()):
            label = int((cond > sizes).any(dim=0).nonzero()[0])
            expected = f"expected 0 to {self.labels[label] - 1}, or -1 if it is missing"
            raise ValueError(f"label {label} of `cond` has class {int(cond[:, label].max())}; {expected}")
        return cond.to(device)

    def dropped_labels(self, guidance: float = 1.0) -> Tensor:
        """Return the classes (J,) that stand for dropped labels; raise a ValueError if the model has no labels."""
        if not self.labels:
            raise ValueError("`guidance` is for models that were trained with labels, and this model was not")
        if not 0 <= guidance < math.inf:
            raise ValueError(f"`guidance` must be a number of at least 0, got {guidance:g}")
        return torch.tensor(self.labels, device=device_of(self)) + 1

    def present(self, x: Tensor) -> Tensor | None:
        """Return which positions come before the end of their example, (B, *D); None if examples never end early."""
        return x != self.num_classes if self.ends else None

    def trimmed(self, x: Tensor) -> Tensor:
        """Return examples (B, L) without the positions that come after the ends of all of them, but at least one."""
        present = self.present(x)
        return x if present is None else x[:, : max(1, int(present.sum(dim=1).max()))]

    def num_symbols(self, x: Tensor) -> Tensor:
        """Return the number of positions of each example, without those after its end: (B,)."""
        present = self.present(x)
        return torch.full((len(x),), x[0].numel()) if present is None else present.flatten(1).sum(dim=1).cpu()

    def forward(self, x: Tensor, draw: Tensor | None = None, cond: Tensor | None = None) -> Tensor:
        return self.training_loss(x, draw, **given_labels(cond))

    def __repr__(self) -> str:
        shape, parameters = " x ".join(map(str, self.event_shape)), sum(p.numel() for p in self.parameters())
        kind = "exact likelihood" if self.is_exact else "a bound on the likelihood"
        columns = self.classes.columns
        of = f"examples of {'at most ' * self.ends}{shape}, "
        of += f"{min(columns)} to {max(columns)} classes per column" if columns else f"{self.num_classes} classes"
        of += f", {len(self.labels)} labels" if self.labels else ""
        return f"{type(self).__name__}: {of}, {parameters:,} parameters, {kind}"

    def bits_per_dim(self, x: Tensor) -> Tensor:
        """Return bits per position: minus the ELBO (minus log P(x) if `is_exact`) over the number of positions, (B,).

        For a bound this is one draw for each example, which is noise by itself; `unordinal.score` averages enough.
        """
        return -self.elbo(x) / (math.log(2) * self.num_symbols(x).to(x.device))


class ExactModel(CategoricalModel):
    """A model whose `log_prob` is log P(x) itself: the bound and the importance weight are the same number.

    A subclass gives `unchecked_log_prob`, `training_loss` and `sample`; docs/extending.md has one in full.

    Args:
        num_classes: the number of classes K, or one number for each column.
        event_shape: the shape of one example.
        **settings: further arguments of `CategoricalModel`.
    """

    def __init__(
        self, num_classes: int | Sequence[int] | Classes, event_shape: tuple[int, ...] | torch.Size, **settings: Any
    ):
        super().__init__(num_classes, event_shape, is_exact=True, **settings)

    @abstractmethod
    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return log P(x | cond) of classes that were checked: (B, *D) int64 -> (B,) nats.

        A model without labels need not have the argument `cond`.
        """

    def log_prob(self, x: Tensor, *, cond: Tensor | None = None) -> Tensor:
        """Return the exact log-probability, without dropout: (B, *D) -> (B,) nats."""
        check_classes(self, x)
        with evaluating(self):
            return self.unchecked_log_prob(x.long(), **given_labels(self.checked_cond(cond, len(x))))

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: Rng = None) -> Tensor:
        """Return `log_prob`; there is no gap."""
        return self.log_prob(x, cond=cond)


def given_labels(cond: Tensor | None) -> dict[str, Tensor]:
    """Return labels as an argument, or no argument, since models without labels need not have it."""
    return {} if cond is None else {"cond": cond}


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
