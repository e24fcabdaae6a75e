"""Samplers, which decide the reverse steps from noise to data."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.progress import current_watcher

Predict = Callable[[Tensor, Tensor], Tensor]
"""A function that predicts the logits of x_0, of shape (N, *D, K), from x_t (N, *D) and times t (N,)."""


class Sampler(Protocol):
    """The interface of a sampler, which goes from noise to data and reports its progress to the current watcher."""

    def chain(
        self, predict: Predict, noise: NoiseProcess, z: Tensor, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Time, Tensor]]:
        """Yield (t, x_t) for every time that is visited, from the first one, where x_t = z, down to t = 0."""


@dataclass(frozen=True)
class Ancestral:
    """Ancestral sampling: draw x_s ~ p(x_s | x_t) at evenly spaced times, all positions at once.

    Args:
        steps: the number of steps; None for all steps of a process in discrete time.
        start: the fraction of the whole chain at which to start.
    """

    steps: int | None = None
    start: float = 1.0

    def chain(
        self, predict: Predict, noise: NoiseProcess, z: Tensor, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Time, Tensor]]:
        watcher, times = current_watcher(), noise.spaced_times(self.steps, self.start)
        watcher.state(times[0], z)
        yield times[0], z
        for t, s in itertools.pairwise(times):
            logits = predict(z, torch.full((len(z),), t))
            z = noise.step(logits, z, t, s, generator=generator)
            watcher.network_calls += 1
            watcher.advance(len(z) / (len(times) - 1))
            watcher.state(s, z)
            yield s, z


def last(chain: Iterator[tuple[Time, Tensor]]) -> Tensor:
    """Run a chain to its end and return its last x_t, which is the data."""
    x = torch.empty(0)
    for _, x in chain:  # noqa: B007 (only the last one is needed)
        pass
    return x
