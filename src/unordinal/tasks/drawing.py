"""Draw samples in batches, with the chain of a diffusion, the calls of the network and the number of invalid codes."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from unordinal.checks import as_classes
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel, device_of
from unordinal.parallel.randomness import generator_of, mixed_seed
from unordinal.progress import Progress, Watcher, silent, watching
from unordinal.settings import NOT_SERVED, PYTHON_ONLY, Flag, Range, Request, Seed
from unordinal.tasks.conditions import conditions_of, drawn_where, with_range_drawn
from unordinal.tasks.reading import read

BATCH = 32  # samples at a time
MOST_CELLS, MOST_LOGITS = 1 << 19, 1 << 24  # of the rows of a table at a time, the latter of one column
CHAINS = 4  # number of samples whose chain is recorded
MOST_STEPS = 256  # default for a diffusion: thousands keep a laptop busy for minutes


@dataclass(frozen=True)
class Sample(Request):
    """Draw samples."""

    num: Annotated[int, Range(1, served=16)] = 4
    """How many samples."""
    steps: Annotated[int | Literal["all"] | None, Range(1, served=1000)] = None
    """Diffusion: network calls to make, spread over the chain; default at most 256, all for the whole chain."""
    sampler: Literal["ancestral", "spread", "corrected", "first-hitting", "entropy", "confidence"] | None = None
    """Diffusion: how to get from noise to data; default the one that suits the model."""
    length: Annotated[int | None, Range(1, served=512)] = None
    """Symbols per sample; default the length that the model was trained with."""
    height: Annotated[int | None, Range(1, served=256)] = None
    """Rows of a map; default what the model was trained with."""
    width: Annotated[int | None, Range(1, served=256)] = None
    """Columns of a map; default what the model was trained with."""
    prompt: Annotated[str | Any | None, Range(0, served=512)] = None
    """Autoregressive models: begin every sample with this text; in Python also classes (P,)."""
    temperature: Annotated[float, Range(0, served=10)] = 1.0
    """Autoregressive models and diffusions: divide the logits by this; below 1 samples are likelier, at 0 the likeliest
    class is taken each time."""
    top_p: Annotated[float, Range(above=0, high=1)] = 1.0
    """Diffusion: draw only from the likeliest classes that together have this probability."""
    greedy_tail: Annotated[float, Range(0, 1)] = 0.0
    """Diffusion: take the likeliest class in this last part of the chain, between 0 and 1."""
    invalid: Annotated[Literal["keep", "resample"], NOT_SERVED] = "keep"
    """Flows: what to do with codes that stand for no class; keep shows them as the replacement character and counts
    them, resample draws the sample again, at most 20 times."""
    batch_size: Annotated[int | None, Range(1), NOT_SERVED] = None
    """Samples drawn at a time; default 32, or as many rows of a table as suit its columns and classes."""
    seed: Seed = 0
    """Seed of the draws."""
    label: Annotated[tuple[str, ...] | Any, Range(0, served=200), Flag(metavar="NAME=VALUE")] = ()
    """Models that were trained with labels: draw samples of these, such as class=frog; in Python also a dict, or the
    classes (J,), or (N, J) for each sample. Labels that are not given are missing."""
    where: Annotated[tuple[str, ...], Range(0, served=200), Flag(metavar="CONDITION")] = ()
    """Tables: draw rows that satisfy these conditions, such as income=high or age>=60. Columns with one value left are
    given to the model, then one column is drawn within its range; rows that do not satisfy further ranges are drawn
    again."""
    known: Annotated[Any, PYTHON_ONLY] = None
    """Diffusions and autoregressive models: classes (N, *D), or (*D) for all samples, of positions that are given, and
    -1 where they are free."""
    particles: Annotated[int, Range(1), PYTHON_ONLY] = 32
    """Autoregressive models: candidates per sample, with `known` positions that are not at the beginning."""


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
) -> Samples:
    """Draw the samples that are asked for.

    Args:
        model: the model to sample from.
        spec: the description of its data.
        asked: the request.
        with_chain: record the chains x_T, ..., x_0 of the first samples (diffusions only).
        on_state: receives the time t and the classes x_t (N, *D) after every step of a chain, as it happens.
    """
    if asked.where:
        return sample_where(model, spec, asked)
    settings = model_settings(model, spec, asked)
    settings |= {"seed": asked.seed, "batch_size": batch_of(spec, asked), "progress": asked.progress}
    return draw(model, asked.num, with_chain=with_chain, on_state=on_state, **settings)


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


def batch_of(spec: DataSpec, asked: Sample) -> int:
    """Return how many samples are drawn at a time."""
    if asked.batch_size or not spec.schema:
        return asked.batch_size or BATCH
    return max(BATCH, min(MOST_CELLS // len(spec.schema), MOST_LOGITS // spec.num_classes))


def model_settings(model: CategoricalModel, spec: DataSpec, asked: Sample) -> dict[str, Any]:
    """Return the arguments of the model's own `sample`; raise a ValueError for settings that it has no use for."""
    check_able(model, asked)
    settings: dict[str, Any] = {}
    shape = sample_shape(spec, asked)
    if shape is not None:
        settings["event_shape"] = shape
    if asked.known is not None:
        settings["known"] = as_classes(asked.known, "known")
    cond = asked_labels(spec, asked.label)
    if cond is not None:
        settings["cond"] = cond
    if model.denoiser is not None:
        settings |= {"sampler": asked.sampler, "top_p": asked.top_p, "greedy_tail": asked.greedy_tail}
        if asked.known is None or asked.steps is not None:  # otherwise `draw` chooses a number for each batch
            free = num_free(model, asked.known, shape)
            settings["steps"] = chosen_steps(asked.steps, model.denoiser.whole_calls(asked.sampler, free))
    if model.stepper is not None:
        settings |= {"prompt": encoded_prompt(asked.prompt, spec), "particles": asked.particles}
    if model.denoiser is not None or model.stepper is not None or model.marginals is not None:
        settings["temperature"] = asked.temperature
    if model.has_invalid_codes:
        settings["invalid"] = asked.invalid
    return settings


def asked_labels(spec: DataSpec, given: Any) -> Tensor | None:
    """Return the classes of labels, (J,) or (N, J), by name or as they are; None if none are given."""
    is_named = isinstance(given, dict | str) or (
        isinstance(given, list | tuple) and all(isinstance(part, str) for part in given)
    )
    if not is_named:
        return as_classes(given, "label")
    found = spec.encode_labels((given,) if isinstance(given, str) else given)
    return None if found is None else torch.tensor(found)


def num_free(model: CategoricalModel, known: Any, shape: tuple[int, ...] | None = None) -> int:
    """Return the number of positions to draw, at most that of any sample where some are `known`."""
    if known is None:
        return math.prod(shape or model.event_shape)
    free = as_classes(known, "known") < 0
    return max(1, int(free.reshape(-1, max(1, math.prod(free.shape[-len(model.event_shape) :]))).sum(dim=1).max()))


def chosen_steps(asked: int | str | None, whole: int | None) -> int | None:
    """Return how many network calls a diffusion makes, by default at most 256."""
    if asked == "all" and whole is None:
        raise ValueError("`steps` all is for diffusions in discrete steps; in continuous time give a number")
    if asked == "all":
        return whole
    if asked is None:
        return MOST_STEPS if whole is None else min(whole, MOST_STEPS)
    return int(asked)


def sample_shape(spec: DataSpec, asked: Sample) -> tuple[int, ...] | None:
    """Return the shape that is asked for; None is the model's own."""
    if not spec.is_map:
        for name in ("height", "width"):
            if getattr(asked, name) is not None:
                raise ValueError(f"`{name}` is for maps; the examples of {spec.name} are sequences, give `length`")
        return None if asked.length is None else (asked.length,)
    if asked.length is not None:
        raise ValueError(f"`length` is for sequences; give `height` and `width` for maps, not {asked.length}")
    if asked.height is None and asked.width is None:
        return None
    return (asked.height or spec.event_shape[0], asked.width or spec.event_shape[1])


def encoded_prompt(prompt: Any, spec: DataSpec) -> Any:
    """Return the classes of a prompt; a text is first mapped to the model's alphabet, capitals to small letters."""
    if not isinstance(prompt, str):
        return prompt
    if spec.vocabulary is None:
        raise ValueError(f"`prompt` as text needs a model of text; {spec.name} has no characters, give classes instead")
    return read(prompt, spec.vocabulary).x


def check_able(model: CategoricalModel, asked: Sample) -> None:
    """Raise a ValueError for settings that a model has no use for."""
    is_diffusion, steps, sums = (part is not None for part in (model.denoiser, model.stepper, model.marginals))
    default = Sample()
    for name, is_able, who in (
        ("steps", is_diffusion, "diffusions, which remove noise step by step"),
        ("sampler", is_diffusion, "diffusions"),
        ("top_p", is_diffusion, "diffusions"),
        ("greedy_tail", is_diffusion, "diffusions"),
        ("temperature", is_diffusion or steps or sums, "diffusions and autoregressive models"),
        ("known", is_diffusion or steps or sums, "diffusions and autoregressive models"),
        ("prompt", steps, "autoregressive models of classes (arm, arm-xl)"),
    ):
        value, usual = getattr(asked, name), getattr(default, name)
        is_given = value is not None if usual is None else value != usual
        if is_given and not is_able:
            raise ValueError(f"`{name}` is for {who}, and this model is not one of them ({type(model).__name__})")


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
