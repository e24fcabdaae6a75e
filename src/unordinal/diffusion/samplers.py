"""Samplers, which decide the reverse steps from noise to data."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unordinal.diffusion.choosing import Chooser, far_apart, independent
from unordinal.diffusion.ordered import EntropyBounded, Ordered
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.diffusion.uniform import UniformNoise
from unordinal.diffusion.unmasking import FirstHitting, HighestConfidence, LowestEntropy, SpreadUnmasking, Unmasking
from unordinal.names import check_known
from unordinal.numerics import Rng, uniform
from unordinal.progress import current_watcher


class Sampler(Protocol):
    """The interface of a sampler, which goes from noise to data and reports its progress to the current watcher."""

    def chain(
        self, predict: Predictor, noise: NoiseProcess, z: Tensor, *, known: Tensor | None = None, generator: Rng = None
    ) -> Iterator[tuple[Time, Tensor]]:
        """Yield (t, x_t) for every time that is visited, from the first one, where x_t = z, down to t = 0.

        `known` (N, *D) holds the classes of positions that are given, and -1 where they are free.
        """

    @staticmethod
    def whole_calls(noise: NoiseProcess, num_free: int, /) -> int | None:
        """Return the network calls of a whole chain for `num_free` free positions; None if there is no such number."""


@dataclass(frozen=True)
class Ancestral:
    """Ancestral sampling: draw x_s ~ p(x_s | x_t) at chosen times, all positions at once.

    Its limit for many steps is the model's own distribution. With fewer steps, positions that change in the same step
    do not see each other.

    Args:
        steps: the number of steps; None for all steps of a process in discrete time.
        start: the fraction of the whole chain at which to start.
        spacing: the exponent of the times: 1 for even spacing, above 1 for times that lie closer near the data.
        corrections: the number of Gibbs steps, spread evenly between the reverse steps; see `Corrected`.
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

    @staticmethod
    def whole_calls(noise: NoiseProcess, _num_free: int) -> int | None:
        """Return the number of steps of a process in discrete time."""
        return noise.num_steps

    def chain(
        self, predict: Predictor, noise: NoiseProcess, z: Tensor, *, known: Tensor | None = None, generator: Rng = None
    ) -> Iterator[tuple[Time, Tensor]]:
        watcher, times = current_watcher(), noise.spaced_times(self.steps, self.start, self.spacing)
        z = noise.impose(z, known, times[0], generator=generator)
        watcher.state(times[0], z)
        yield times[0], z
        end, gaps = noise.num_steps or 1, max(1, len(times) - 2)
        for number, (t, s) in enumerate(itertools.pairwise(times)):
            logits = predict(z, torch.full((len(z),), t), t / end)
            if predict.free is None:
                z = noise.step(logits, z, t, s, generator=generator, choose=self.choose)
            else:
                assert isinstance(noise, UniformNoise)  # with a mask, the predictions are mixed already
                z = noise.guided_step(predict.free, logits, predict.guidance, z, t, s, generator=generator)
            z = noise.impose(z, known, s, generator=generator)
            if s > 0:
                for _ in range((number + 1) * self.corrections // gaps - number * self.corrections // gaps):
                    z = corrected(predict, noise, z, s, known, generator)
            watcher.advance(len(z) / (len(times) - 1))
            watcher.state(s, z)
            yield s, z


CORRECTED_SHARE = 0.1  # of the positions, in one Gibbs step


def corrected(
    predict: Predictor, noise: NoiseProcess, z: Tensor, t: Time, known: Tensor | None, generator: Rng
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
class Corrected:
    """Ancestral sampling with Gibbs steps between the reverse steps: half of the calls correct what went wrong before.

    A Gibbs step redraws some positions given all others, at the same noise. With an exact network and one position at a
    time it leaves the distribution at that noise as it is.

    Args:
        calls: the number of network calls; None for a Gibbs step after every step of a process in discrete time.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=Corrected(4)).shape
    torch.Size([2, 6])
    """

    calls: int | None = None

    @staticmethod
    def whole_calls(noise: NoiseProcess, _num_free: int) -> int | None:
        """Return the calls of all steps of a process in discrete time, with a Gibbs step after each but the last."""
        return None if noise.num_steps is None else 2 * noise.num_steps - 1

    def chain(
        self, predict: Predictor, noise: NoiseProcess, z: Tensor, *, known: Tensor | None = None, generator: Rng = None
    ) -> Iterator[tuple[Time, Tensor]]:
        calls = self.whole_calls(noise, 0) if self.calls is None else self.calls
        if calls is None or calls < 2:
            raise ValueError(f"a corrected sampler needs `steps` of at least 2, got {calls}")
        steps = max(2, (calls + 1) // 2)
        return Ancestral(steps, corrections=calls - steps).chain(predict, noise, z, known=known, generator=generator)


@dataclass(frozen=True)
class Spread:
    """Let positions that are far apart change in the same call, for they hardly depend on each other.

    Every position changes with the probability that it has in ancestral sampling, so that only the combinations of
    positions differ (see `choosing.far_apart`). With a mask, one position per call and a network that does not read the
    time it draws from the model exactly, like `FirstHitting`. With fewer calls it comes closer to the model than
    `Ancestral` does where neighbours depend on each other more than distant positions do; elsewhere it may not
    (docs/results/sampler-truth.md).

    Args:
        steps: the number of network calls. None takes one for each position with absorbing noise, otherwise all steps.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=Spread(3)).shape
    torch.Size([2, 6])
    """

    steps: int | None = None

    @staticmethod
    def whole_calls(noise: NoiseProcess, num_free: int) -> int | None:
        """Return one call for each free position if the noise has a mask, else the number of steps."""
        return noise.num_steps if noise.mask is None else num_free

    def chain(
        self, predict: Predictor, noise: NoiseProcess, z: Tensor, *, known: Tensor | None = None, generator: Rng = None
    ) -> Iterator[tuple[Time, Tensor]]:
        has_mask = noise.mask is not None
        sampler: Sampler = SpreadUnmasking(self.steps) if has_mask else Ancestral(self.steps, choose=far_apart)
        return sampler.chain(predict, noise, z, known=known, generator=generator)


SAMPLERS: dict[str, type[Sampler]] = {
    "ancestral": Ancestral,
    "corrected": Corrected,
    "first-hitting": FirstHitting,
    "spread": Spread,
    "entropy": LowestEntropy,
    "confidence": HighestConfidence,
    "margin": Ordered,
    "entropy-bounded": EntropyBounded,
}
"""The samplers by name; each is made from its number of network calls."""


def sampler_named(name: str, steps: int | None = None, budget: float | None = None) -> Sampler:
    """Return a sampler by its name, with a number of network calls.

    Args:
        name: one of `SAMPLERS`.
        steps: the number of network calls; None for all.
        budget: the nats of a call of the sampler entropy-bounded; None for its default.

    >>> sampler_named("entropy-bounded", budget=0.1)
    EntropyBounded(steps=None, ranking='entropy', budget=0.1)
    """
    check_known("sampler", name, SAMPLERS)
    if budget is not None:
        if name != "entropy-bounded":
            raise ValueError(f"`budget` is for the sampler entropy-bounded, not {name}")
        return EntropyBounded(steps, budget=budget)
    return SAMPLERS[name](steps)  # type: ignore[call-arg]


def suitable_samplers(noise: NoiseProcess) -> tuple[str, ...]:
    """Return the names of the samplers that suit a noise process.

    >>> from unordinal import ContinuousUniformNoise
    >>> suitable_samplers(ContinuousUniformNoise(3))
    ('ancestral', 'corrected', 'spread')
    """
    has_mask = noise.mask is not None
    return tuple(name for name, kind in SAMPLERS.items() if has_mask or not issubclass(kind, Unmasking))


def default_sampler(noise: NoiseProcess) -> str:
    """Return the name of the sampler that suits a noise process best."""
    return "spread" if noise.mask is not None and noise.num_steps is None else "ancestral"


def last(chain: Iterator[tuple[Time, Tensor]]) -> Tensor:
    """Run a chain to its end and return its last x_t, which is the data."""
    x = torch.empty(0)
    for _, x in chain:  # noqa: B007 (only the last one is needed)
        pass
    return x
