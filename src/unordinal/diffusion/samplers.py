"""Samplers: the order and the size of the reverse steps that lead from noise to data."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.progress import current_watcher

Predict = Callable[[Tensor, Tensor], Tensor]
"""Logits of x_0 from x_t (N, *D) and times t (N,): (N, *D, K)."""


class Sampler(Protocol):
    """Goes from x_t = z back to the data, and tells the current watcher of each network call and each x_t."""

    def chain(
        self, predict: Predict, noise: NoiseProcess, z: Tensor, *, generator: torch.Generator | None = None
    ) -> Iterator[tuple[Time, Tensor]]:
        """Yield (t, x_t) from z on, which is the first, down to t = 0."""


@dataclass(frozen=True)
class Ancestral:
    """Draw each x_s ~ p(x_s | x_t) in turn, all positions at once, at evenly spaced times.

    `steps` visits only that many times; None visits them all. `start` is the part of the whole chain to begin from.
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
    """The data at the end of a chain."""
    x = torch.empty(0)
    for _, x in chain:  # noqa: B007 (the last one is wanted)
        pass
    return x
