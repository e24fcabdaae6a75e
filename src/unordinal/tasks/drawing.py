"""Draw samples in batches and record the diffusion chain, the calls of the network and the number of invalid codes."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from unordinal.model import Abilities, CategoricalModel, device_of
from unordinal.progress import Progress, Watcher, silent, watching

BATCH = 32
CHAINS = 4  # number of samples whose chain is recorded


@dataclass(frozen=True)
class Samples:
    """Samples and how they were drawn."""

    x: Tensor  # the samples, (N, *D) on the CPU
    chains: list[tuple[float, Tensor]]  # t and x_t of the first samples (at most 4); empty unless they were requested
    network_calls: float | None  # for each sample, in the mean; None if the model does not count them
    num_invalid: int  # positions whose code stands for no class
    seconds: float  # how long sampling took
    effective_particles: float | None = None  # the smallest effective number of particles, where some were resampled

    @property
    def chain(self) -> list[tuple[float, Tensor]]:
        """The times t and classes x_t of the first sample."""
        return [(t, x[0]) for t, x in self.chains]


def draw(
    model: CategoricalModel,
    num: int,
    *,
    seed: int = 0,
    with_chain: bool = False,
    batch_size: int = BATCH,
    progress: Progress = silent,
    on_state: Callable[[float, Tensor], None] | None = None,
    **settings: Any,
) -> Samples:
    """Draw samples from a model, one batch after another.

    Args:
        model: the model to sample from.
        num: how many samples to draw.
        seed: the seed of the random numbers.
        with_chain: whether to record the chains x_T, ..., x_0 of the first samples (diffusion models only).
        batch_size: how many samples to draw at a time.
        progress: receives the number of samples drawn.
        on_state: is told the time t and the classes x_t (N, *D) after every step of a chain, as it happens.
        settings: passed on to the model's `sample`.

    Returns:
        The samples and how they were drawn.
    """
    for name, value in (("num_samples", num), ("batch_size", batch_size)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value}")
    if with_chain and not model.abilities.chain:
        raise ValueError(f"{type(model).__name__} draws a sample without a chain of steps, so there is none to show")
    generator = torch.Generator(device_of(model)).manual_seed(seed)
    chains: list[tuple[float, Tensor]] = []
    parts: list[Tensor] = []
    began = time.monotonic()
    with progress("Sampling", num) as advance, watching(Watcher(advance)) as watcher:

        def note(t: float, x: Tensor) -> None:
            if with_chain and not parts:
                chains.append((t, x[:CHAINS].cpu()))
            if on_state is not None:
                on_state(t, x)

        watcher.state = note
        for start in range(0, num, batch_size):
            parts.append(model.sample(min(batch_size, num - start), generator=generator, **settings).cpu())
    x = torch.cat(parts)
    num_invalid = int((x >= model.num_classes).sum())
    seconds, calls = time.monotonic() - began, watcher.network_calls / num or None
    return Samples(x, chains, calls, num_invalid, seconds, watcher.effective_particles)


def check_able(can: Abilities, is_given: Mapping[str, bool], what: str) -> None:
    """Refuse settings of a sample that a model has no use for.

    Args:
        can: what the model can do.
        is_given: for each setting, whether it was given.
        what: the model, for the message, such as "runs/book is of arm".
    """
    for name, is_able, who in (
        ("steps", can.chain, "models that have reverse steps"),
        ("chain", can.chain, "models that have reverse steps"),
        ("sampler", bool(can.samplers), "diffusions"),
        ("top_p", bool(can.samplers), "diffusions"),
        ("greedy_tail", bool(can.samplers), "diffusions"),
        ("temperature", can.temperature, "models with a temperature"),
        ("prompt", can.prompt, "autoregressive models of classes (arm, arm-xl)"),
    ):
        if is_given.get(name) and not is_able:
            raise ValueError(f"`{name}` is for {who}; {what}, which has none")
