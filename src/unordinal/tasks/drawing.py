"""Draw samples in batches, with the chain of a diffusion, the calls of the network and the number of invalid codes."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel, device_of
from unordinal.parallel.randomness import generator_of, mixed_seed
from unordinal.progress import Progress, Watcher, silent, watching
from unordinal.tasks.asking import BATCH, Sample, batch_of, chosen_steps, model_settings, num_free
from unordinal.tasks.conditions import conditions_of, drawn_where, with_range_drawn
from unordinal.tasks.distinct import draw_distinct

CHAINS = 4  # number of samples whose chain is recorded


@dataclass(frozen=True)
class Samples:
    """Samples and how they were drawn."""

    x: Tensor  # the samples, (N, *D) on the CPU
    chains: list[tuple[float, Tensor]]  # t and x_t of the first samples (at most 4); empty unless they were requested
    network_calls: float | None  # for each sample, in the mean; None if the model does not count them
    num_invalid: int  # positions whose code stands for no class
    seconds: float  # how long sampling took
    steps: int | None = None  # network calls that were asked for, of a diffusion
    whole_steps: int | None = None  # network calls of the whole chain; None if there is no such number
    accepted: float | None = None  # the share of rows that satisfied the conditions of a table
    shares: dict[str, float] = field(default_factory=dict)  # of unique and of novel samples, where they were asked for

    @property
    def chain(self) -> list[tuple[float, Tensor]]:
        """The times t and classes x_t of the first sample."""
        return [(t, x[0]) for t, x in self.chains]


def sample(
    model: CategoricalModel,
    spec: DataSpec,
    asked: Sample,
    *,
    with_chain: bool = False,
    on_state: Callable[[float, Tensor], None] | None = None,
    seen: Collection[bytes] | None = None,
) -> Samples:
    """Draw the samples that are asked for.

    Args:
        model: the model to sample from.
        spec: the description of its data.
        asked: the request.
        with_chain: record the chains x_T, ..., x_0 of the first samples (diffusions only).
        on_state: receives the time t and the classes x_t (N, *D) after every step of a chain, as it happens.
        seen: keys of the rows of the training data, for `novel`.
    """
    if asked.unique or asked.novel:
        return sample_distinct(model, spec, asked, seen)
    if asked.where:
        return sample_where(model, spec, asked)
    settings = model_settings(model, spec, asked)
    settings |= {"seed": asked.seed, "batch_size": batch_of(spec, asked), "progress": asked.progress}
    return draw(model, asked.num, with_chain=with_chain, on_state=on_state, **settings)


def sample_distinct(model: CategoricalModel, spec: DataSpec, asked: Sample, seen: Collection[bytes] | None) -> Samples:
    """Draw samples that differ from each other, or from the training data."""
    if asked.novel and seen is None:
        raise ValueError("`novel` compares with the training data, which are not at hand")
    plain, began = replace(asked, unique=False, novel=False), time.monotonic()

    def drawn(num: int, turn: int) -> Tensor:
        seed = mixed_seed(asked.seed, turn, 2) if turn else asked.seed
        return sample(model, spec, replace(plain, num=num, seed=seed)).x

    x, shares = draw_distinct(drawn, asked.num, unique=asked.unique, seen=seen if asked.novel else None)
    return Samples(x, [], None, 0, time.monotonic() - began, shares=shares)


def sample_where(model: CategoricalModel, spec: DataSpec, asked: Sample) -> Samples:
    """Draw rows of a table that satisfy the conditions that are asked for."""
    conditions, began = conditions_of(spec, asked.where), time.monotonic()
    if asked.known is not None:
        raise ValueError("give `where` or `known`, not both")

    def drawn(num: int, turn: int) -> Tensor:
        seed = mixed_seed(asked.seed, turn, 0) if turn else asked.seed
        known = with_range_drawn(model, conditions, num, generator_of(seed, 1))
        if not bool((known < 0).any()):
            return known
        given = None if bool((known < 0).all()) else known
        return sample(model, spec, replace(asked, num=num, where=(), known=given, seed=seed)).x

    x, accepted = drawn_where(drawn, conditions, asked.num)
    return Samples(x, [], None, 0, time.monotonic() - began, accepted=accepted)


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
        on_state: receives the time t and the classes x_t (N, *D) after every step of a chain, as it happens.
        settings: passed on to the model's `sample`.

    Returns:
        The samples and how they were drawn.
    """
    if (with_chain or on_state is not None) and model.denoiser is None:
        raise ValueError(f"{type(model).__name__} draws a sample without a chain of steps")
    generator = generator_of(seed, device=device_of(model))
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
        known, has_default = settings.pop("known", None), "steps" not in settings
        cond = settings.pop("cond", None)
        has_own = cond is not None and cond.dim() > 1 and len(cond) == num
        is_each = known is not None and known.dim() > len(model.event_shape) and len(known) == num
        for start in range(0, num, batch_size):
            size = min(batch_size, num - start)
            if known is not None:
                settings["known"] = known[start : start + size] if is_each else known
            if cond is not None:
                settings["cond"] = cond[start : start + size] if has_own else cond
            if known is not None and has_default and model.denoiser is not None:
                whole = model.denoiser.whole_calls(settings.get("sampler"), num_free(model, settings["known"]))
                settings["steps"] = chosen_steps(None, whole)
            parts.append(model.sample(size, generator=generator, **settings).cpu())
    x = torch.cat(parts)
    num_invalid = 0 if model.ends else int((x >= model.num_classes).sum())
    seconds, calls = time.monotonic() - began, watcher.network_calls / num or None
    whole = None if model.denoiser is None else model.denoiser.whole_calls(settings.get("sampler"), x[0].numel())
    return Samples(x, chains, calls, num_invalid, seconds, settings.get("steps"), whole)
