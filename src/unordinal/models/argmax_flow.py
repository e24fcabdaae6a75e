"""Argmax flows, and every flow on discrete data: a surjection over a density."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from unordinal.abilities import TrainingHooks
from unordinal.checks import sample_shape
from unordinal.errors import NotANumberError, RunError
from unordinal.flows.density import Density
from unordinal.model import evaluating
from unordinal.models.importance import ImportanceModel, start_actnorm, tell_of_samples
from unordinal.nets.places import LabelEmbedding
from unordinal.numerics import Rng
from unordinal.surjections.surjection import Surjection

MOST_TRIES = 20  # draws of a sample before its invalid codes are given up on


class InvalidSamplesError(RunError):
    """Every redraw of a sample held codes that mean no class."""


class ArgmaxFlow(ImportanceModel):
    """An argmax flow (section 3): P(x) is the integral of p(v) over the v that quantise to x, bounded with q(v | x).

    Args:
        surjection: what quantises v, with its probabilistic inverse q(v | x).
        density: p(v) over (B, *D, C).
        event_shape: the shape of one example.
        context: a network from classes (B, *D) to features (B, *D, H) that q(v | x) is given; None for none.
        side_multiple: what the sides of an example must be multiples of, for densities that halve them.
        labels: the embedding of the labels that may be given with an example, for a density that reads a condition of
            its width; None for none.

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
        side_multiple: int = 1,
        labels: LabelEmbedding | None = None,
    ):
        sizes = () if labels is None else labels.sizes
        super().__init__(surjection.num_classes, event_shape, side_multiple=side_multiple, labels=sizes)
        self.label_embedding = labels
        channels = (density.event_shape or (surjection.num_channels,))[-1]
        if channels != surjection.num_channels:
            raise ValueError(
                f"the surjection gives {surjection.num_channels} channels for {surjection.num_classes} classes, "
                f"but the density has {channels}"
            )
        positions = tuple(density.event_shape[:-1])
        if positions and positions != tuple(event_shape):
            raise ValueError(f"the density is over {positions} positions, but an example has {tuple(event_shape)}")
        self.surjection, self.density, self.context = surjection, density, context
        self.has_invalid_codes = surjection.has_invalid

    @property
    def hooks(self) -> TrainingHooks:
        return ArgmaxFlowHooks(self)

    def unchecked_log_weight(self, x: Tensor, generator: Rng = None, cond: Tensor | None = None) -> Tensor:
        """Return log p(v) - log q(v | x) for one v ~ q(v | x) per example: (B, *D) -> (B,) (Alg. 2)."""
        v, log_q = self.lifted(x, generator)
        return self.density.log_prob(v, self.condition(cond, x.shape[1:])) - log_q

    def condition(self, cond: Tensor | None, shape: torch.Size) -> Tensor | None:
        """Return the features of labels (B, J) at every position: (B, *D, H)."""
        if cond is None or self.label_embedding is None:
            return None
        features = self.label_embedding(cond)
        return features.view(len(cond), *([1] * len(shape)), -1).expand(-1, *shape, -1)

    def lifted(self, x: Tensor, generator: Rng = None) -> tuple[Tensor, Tensor]:
        """Draw v ~ q(v | x) and return it with its log-density."""
        x = x.long()
        return self.surjection.lift(x, None if self.context is None else self.context(x), generator=generator)

    @torch.no_grad()
    def sample(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        invalid: Literal["keep", "resample"] = "keep",
        cond: Any = None,
        **settings: Any,
    ) -> Tensor:
        """Draw v ~ p(v) and quantise (Alg. 1): (N, *D) classes.

        Codes that mean no class are numbers >= num_classes; they are kept, or with `invalid="resample"` the samples
        that hold one are drawn again, at most 20 times.
        """
        shape = sample_shape(self, num_samples, event_shape, settings)
        if invalid not in ("keep", "resample"):
            raise ValueError(f"invalid codes can be kept or resampled, not {invalid!r}")
        labels = self.condition(self.checked_cond(cond, num_samples), shape)
        with evaluating(self):
            x = self._draw(num_samples, shape, labels, generator)
            for _ in range(MOST_TRIES - 1):
                bad = (x >= self.num_classes).flatten(1).any(dim=1)
                if invalid == "keep" or not bool(bad.any()):
                    break
                x[bad] = self._draw(int(bad.sum()), shape, None if labels is None else labels[bad], generator)
        num_bad = int((x >= self.num_classes).flatten(1).any(dim=1).sum())
        if invalid == "resample" and num_bad:
            raise InvalidSamplesError(
                f"{num_bad} of {num_samples} samples still hold invalid codes after {MOST_TRIES} tries; "
                "keep them, or train the model longer"
            )
        tell_of_samples(self.density, num_samples)
        return x

    def _draw(self, num: int, shape: torch.Size, cond: Tensor | None, generator: Rng) -> Tensor:
        event_shape = (*shape, self.surjection.num_channels)
        v, _ = self.density.sample(num, cond, event_shape=event_shape, generator=generator)
        if bool(torch.isnan(v).any()):
            raise NotANumberError("the density has drawn NaN, which is no class; has the training diverged?")
        return self.surjection.quantize(v)


class ArgmaxFlowHooks(TrainingHooks):
    """Lets the parts that start from data (Gumbel locations, ActNorm) see a first batch."""

    def __init__(self, model: ArgmaxFlow):
        self.model = model

    @torch.no_grad()
    def initialise(self, x: Tensor) -> None:
        model = self.model
        was_training = model.training
        model.train()
        v, _ = model.lifted(x)
        model.train(was_training)
        labels = model.condition(model.checked_cond(None, len(v)), x.shape[1:])
        start_actnorm(model, model.density, v, labels)
