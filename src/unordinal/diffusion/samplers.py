"""Samplers, which decide the reverse steps from noise to data."""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.choosing import Chooser, far_apart, independent
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.numerics import draw_categorical, expand_like, uniform
from unordinal.progress import current_watcher


class Sampler(Protocol):
    """The interface of a sampler, which goes from noise to data and reports its progress to the current watcher."""

    def chain(
        self,
        predict: Predictor,
        noise: NoiseProcess,
        z: Tensor,
        *,
        known: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Iterator[tuple[Time, Tensor]]:
        """Yield (t, x_t) for every time that is visited, from the first one, where x_t = z, down to t = 0.

        `known` (N, *D) holds the classes of positions that are given, and -1 where they are free.
        """


@dataclass(frozen=True)
class Ancestral:
    """Ancestral sampling: draw x_s ~ p(x_s | x_t) at chosen times, all positions at once.

    Its limit for many steps is the model's own distribution. With fewer steps, positions that change in the same step
    do not see each other.

    Args:
        steps: the number of steps; None for all steps of a process in discrete time.
        start: the fraction of the whole chain at which to start.
        spacing: the exponent of the times: 1 for even spacing, above 1 for times that lie closer near the data.
        corrections: Gibbs steps after every reverse step; see `Corrected`.
        choose: chooses the positions that change in a step, from the probability of each; see `Spread`.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=Ancestral(4)).shape
    torch.Size([2, 6])
    """

    steps: int | None = None
    start: float = 1.0
    spacing: float = 1.0
    corrections: int = 0
    choose: Chooser = independent

    def chain(
        self,
        predict: Predictor,
        noise: NoiseProcess,
        z: Tensor,
        *,
        known: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Iterator[tuple[Time, Tensor]]:
        watcher, times = current_watcher(), noise.spaced_times(self.steps, self.start, self.spacing)
        z = noise.impose(z, known, times[0], generator=generator)
        watcher.state(times[0], z)
        yield times[0], z
        end = noise.num_steps or 1
        for t, s in itertools.pairwise(times):
            logits = predict(z, torch.full((len(z),), t), t / end)
            z = noise.step(logits, z, t, s, generator=generator, choose=self.choose)
            z = noise.impose(z, known, s, generator=generator)
            if s > 0:
                for _ in range(self.corrections):
                    z = corrected(predict, noise, z, s, known, generator)
            watcher.advance(len(z) / (len(times) - 1))
            watcher.state(s, z)
            yield s, z


CORRECTED_SHARE = 0.1  # of the positions, in one Gibbs step


def corrected(
    predict: Predictor,
    noise: NoiseProcess,
    z: Tensor,
    t: Time,
    known: Tensor | None,
    generator: torch.Generator | None,
) -> Tensor:
    """One Gibbs step at time t: redraw a tenth of the positions, at least one, given all others."""
    flat = uniform((len(z), z[0].numel()), z.device, generator)
    num = max(1, round(CORRECTED_SHARE * flat.shape[1]))
    chosen = (flat.argsort(dim=1).argsort(dim=1) < num).view_as(z) & noise.can_redraw(z)
    if known is not None:
        chosen &= known < 0
    hidden = noise.hide(z, chosen)
    logits = predict(hidden, torch.full((len(z),), t), t / (noise.num_steps or 1))
    return torch.where(chosen, noise.redraw(logits, t, generator=generator), hidden)


@dataclass(frozen=True)
class Corrected(Ancestral):
    """Ancestral sampling with a Gibbs step after every reverse step: half of the calls correct what went wrong before.

    A Gibbs step redraws some positions given all others, at the same noise. With an exact network and one position at a
    time it leaves the distribution at that noise as it is.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=Corrected(4)).shape
    torch.Size([2, 6])
    """

    corrections: int = 1

    @staticmethod
    def of_calls(calls: int | None) -> "Corrected":
        """The sampler that makes so many network calls in total."""
        if calls is not None and calls < 2:
            raise ValueError(f"a corrected sampler needs `steps` of at least 2, got {calls}")
        return Corrected(None if calls is None else (calls + 1) // 2)


@dataclass(frozen=True)
class Unmasking(ABC):
    """Samplers for absorbing noise that show a number of positions with every network call.

    Args:
        steps: the number of network calls; None for one position per call.
    """

    steps: int | None = None

    @abstractmethod
    def shown_next(self, logits: Tensor, is_masked: Tensor, num: Tensor, generator: torch.Generator | None) -> Tensor:
        """Return which of the masked positions to show, `num` (N,) of them in each sample: (N, *D) booleans."""

    def chain(
        self,
        predict: Predictor,
        noise: NoiseProcess,
        z: Tensor,
        *,
        known: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Iterator[tuple[Time, Tensor]]:
        if not isinstance(noise, AbsorbingNoise):
            raise ValueError("this sampler shows masked positions, and the noise of this model has no mask")
        z = noise.impose(z, known, 1.0, generator=generator)
        most = int((z == noise.mask).flatten(1).sum(dim=1).max())
        calls = most if self.steps is None else self.steps
        if not 1 <= calls <= most:
            raise ValueError(f"`steps` must be between 1 and {most}, one for each free position; got {calls}")
        watcher, size, end = current_watcher(), z[0].numel(), noise.num_steps or 1
        watcher.state(end, z)
        yield end, z
        for call in range(calls):
            is_masked = z == noise.mask
            left = is_masked.flatten(1).sum(dim=1)  # (N,)
            level = noise.time_of((left / size).cpu())
            logits = predict(z, level, float(left.max()) / size)
            num = (left // (calls - call)).clamp(min=1)  # rather one more at the end, when more is known
            is_shown = self.shown_next(logits, is_masked, num, generator)
            z = z.clone()
            z[is_shown] = draw_categorical(logits[is_shown], generator)
            watcher.advance(len(z) / calls)
            t = end * float((z == noise.mask).flatten(1).sum(dim=1).max()) / size
            watcher.state(t, z)
            yield t, z


def most_urgent(urgency: Tensor, is_masked: Tensor, num: Tensor) -> Tensor:
    """Return the masked positions with the largest numbers, `num` (N,) of them in each sample: (N, *D) booleans."""
    rank = urgency.masked_fill(~is_masked, -math.inf).flatten(1).argsort(dim=1, descending=True).argsort(dim=1)
    return (rank < num.unsqueeze(1)).view_as(is_masked) & is_masked


@dataclass(frozen=True)
class FirstHitting(Unmasking):
    """Show positions in random order. One per call draws from the model exactly, with as many calls as positions.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=FirstHitting()).shape
    torch.Size([2, 6])
    """

    def shown_next(self, logits: Tensor, is_masked: Tensor, num: Tensor, generator: torch.Generator | None) -> Tensor:
        return most_urgent(uniform(logits.shape[:-1], logits.device, generator), is_masked, num)


@dataclass(frozen=True)
class SpreadUnmasking(Unmasking):
    """Show positions in random order, those of one call far apart from each other; see `Spread`.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=SpreadUnmasking(3)).shape
    torch.Size([2, 6])
    """

    def shown_next(
        self,
        logits: Tensor,  # noqa: ARG002
        is_masked: Tensor,
        num: Tensor,
        generator: torch.Generator | None,
    ) -> Tensor:
        left = is_masked.flatten(1).sum(dim=1).clamp(min=1)
        return far_apart(is_masked * expand_like(num / left, is_masked), generator) & is_masked


@dataclass(frozen=True)
class Spread:
    """Let positions that are far apart change in the same call, for they hardly depend on each other.

    Every position changes with the probability that it has in ancestral sampling, so that only the combinations of
    positions differ (see `choosing.far_apart`). With absorbing noise and one position per call it draws from the model
    exactly, like `FirstHitting`. With fewer calls it comes closer to the model than `Ancestral` does where neighbours
    depend on each other more than distant positions do; elsewhere it may not (docs/results.md).

    Args:
        steps: the number of network calls. None takes one for each position with absorbing noise, otherwise all steps.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=Spread(3)).shape
    torch.Size([2, 6])
    """

    steps: int | None = None

    def chain(
        self,
        predict: Predictor,
        noise: NoiseProcess,
        z: Tensor,
        *,
        known: Tensor | None = None,
        generator: torch.Generator | None = None,
    ) -> Iterator[tuple[Time, Tensor]]:
        has_mask = isinstance(noise, AbsorbingNoise)
        sampler: Sampler = SpreadUnmasking(self.steps) if has_mask else Ancestral(self.steps, choose=far_apart)
        return sampler.chain(predict, noise, z, known=known, generator=generator)


@dataclass(frozen=True)
class LowestEntropy(Unmasking):
    """Show the positions of which the network is surest, by the entropy of its prediction. An approximation.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=LowestEntropy(3)).shape
    torch.Size([2, 6])
    """

    def shown_next(
        self,
        logits: Tensor,
        is_masked: Tensor,
        num: Tensor,
        generator: torch.Generator | None,  # noqa: ARG002
    ) -> Tensor:
        log_p = torch.log_softmax(logits, dim=-1)
        certainty = (log_p.exp() * log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(dim=-1)
        return most_urgent(certainty, is_masked, num)


@dataclass(frozen=True)
class HighestConfidence(Unmasking):
    """Show the positions whose likeliest class is the most probable. An approximation.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=HighestConfidence(3)).shape
    torch.Size([2, 6])
    """

    def shown_next(
        self,
        logits: Tensor,
        is_masked: Tensor,
        num: Tensor,
        generator: torch.Generator | None,  # noqa: ARG002
    ) -> Tensor:
        return most_urgent(torch.log_softmax(logits, dim=-1).amax(dim=-1), is_masked, num)


SAMPLERS: dict[str, Callable[[int | None], Sampler]] = {
    "ancestral": Ancestral,
    "corrected": Corrected.of_calls,
    "first-hitting": FirstHitting,
    "spread": Spread,
    "entropy": LowestEntropy,
    "confidence": HighestConfidence,
}
"""The samplers by name; each is made from its number of network calls."""


def suitable_samplers(noise: NoiseProcess) -> tuple[str, ...]:
    """Return the names of the samplers that suit a noise process.

    >>> from unordinal import ContinuousUniformNoise
    >>> suitable_samplers(ContinuousUniformNoise(3))
    ('ancestral', 'corrected', 'spread')
    """
    has_mask = noise.num_input_classes > noise.num_classes
    return tuple(name for name, make in SAMPLERS.items() if has_mask or not isinstance(make(None), Unmasking))


def last(chain: Iterator[tuple[Time, Tensor]]) -> Tensor:
    """Run a chain to its end and return its last x_t, which is the data."""
    x = torch.empty(0)
    for _, x in chain:  # noqa: B007 (only the last one is needed)
        pass
    return x
