"""Samples in batches, with what happened on the way: the chain, the network's calls, codes that mean no class."""

import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unordinal.model import CategoricalModel, device_of
from unordinal.progress import Progress, Watcher, silent, watching

BATCH = 32
CHAINS = 4  # samples whose way is kept


@dataclass(frozen=True)
class Drawn:
    """Samples (N, *D) on the CPU, and how they came about."""

    x: Tensor
    chains: list[tuple[float, Tensor]]  # t and x_t of the first samples (at most 4), where asked for
    network_calls: int | None  # of all batches together; None where the model does not count them
    num_invalid: int  # codes that mean no class
    seconds: float

    @property
    def chain(self) -> list[tuple[float, Tensor]]:
        """t and x_t of the first sample."""
        return [(t, x[0]) for t, x in self.chains]


def draw(
    model: CategoricalModel,
    num: int,
    *,
    seed: int = 0,
    with_chain: bool = False,
    batch_size: int = BATCH,
    progress: Progress = silent,
    **settings: Any,
) -> Drawn:
    """Draw `num` samples, `batch_size` at a time; `settings` are those of the model's `sample`."""
    for name, value in (("num_samples", num), ("batch_size", batch_size)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}")
    if with_chain and not model.abilities.chain:
        raise ValueError(f"{type(model).__name__} draws a sample without a chain of steps to show")
    generator = torch.Generator(device_of(model)).manual_seed(seed)
    chains: list[tuple[float, Tensor]] = []
    parts: list[Tensor] = []
    began = time.monotonic()
    with progress("Sampling", num) as advance, watching(Watcher(advance)) as watcher:
        if with_chain:
            watcher.state = lambda t, x: chains.append((t, x[:CHAINS].cpu())) if not parts else None
        for start in range(0, num, batch_size):
            parts.append(model.sample(min(batch_size, num - start), generator=generator, **settings).cpu())
    x = torch.cat(parts)
    num_invalid = int((x >= model.num_classes).sum())
    return Drawn(x, chains, watcher.network_calls or None, num_invalid, time.monotonic() - began)
