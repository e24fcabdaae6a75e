"""What may be asked of a model's samples, and what that means for the model's own `sample`."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import torch
from torch import Tensor

from unordinal.checks import as_classes
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.settings import NOT_SERVED, PYTHON_ONLY, Flag, Range, Request, Seed
from unordinal.tasks.reading import read

BATCH = 32  # samples at a time
MOST_CELLS, MOST_LOGITS = 1 << 19, 1 << 24  # of the rows of a table at a time, the latter of one column
MOST_STEPS = 256  # default for a diffusion: thousands keep a laptop busy for minutes

SamplerName = Literal[
    "ancestral", "spread", "corrected", "first-hitting", "entropy", "confidence", "margin", "entropy-bounded"
]


@dataclass(frozen=True)
class Sample(Request):
    """Draw samples."""

    num: Annotated[int, Range(1, served=16)] = 4
    """How many samples."""
    steps: Annotated[int | Literal["all"] | None, Range(1, served=1000)] = None
    """Diffusion: network calls to make, spread over the chain; default at most 256, all for the whole chain."""
    sampler: SamplerName | None = None
    """Diffusion: how to get from noise to data; default the one that suits the model."""
    budget: Annotated[float | None, Range(0, served=1000)] = None
    """Sampler entropy-bounded: the nats of entropy of a call, default 0.5; with more, a call shows more positions, and
    `steps` is the most calls."""
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
    classes (J,), or (N, J) for each sample. Without any, samples are those of all
    labels; with some, the others are missing."""
    guidance: Annotated[float, Range(0, served=20)] = 1.0
    """Models that were trained with labels: how much the labels count. 0 ignores them, 1 is the model itself, and above
    1 samples fit the labels better and differ less from each other."""
    unique: Annotated[bool, NOT_SERVED] = False
    """Draw until all samples differ from each other."""
    novel: Annotated[bool, NOT_SERVED] = False
    """Draw until no sample stands in the training data, which must be at hand."""
    where: Annotated[tuple[str, ...], Range(0, served=200), Flag(metavar="CONDITION")] = ()
    """Tables: draw rows that satisfy these conditions, such as income=high or age>=60. Columns with one value left are
    given to the model, then one column is drawn within its range; rows that do not satisfy further ranges are drawn
    again."""
    known: Annotated[Any, PYTHON_ONLY] = None
    """Diffusions and autoregressive models: classes (N, *D), or (*D) for all samples, of positions that are given, and
    -1 where they are free."""
    particles: Annotated[int, Range(1), PYTHON_ONLY] = 32
    """Autoregressive models: candidates per sample, with `known` positions that are not at the beginning."""


def batch_of(spec: DataSpec, asked: Sample) -> int:
    """Return how many samples are drawn at a time."""
    if asked.batch_size or not spec.schema:
        return asked.batch_size or BATCH
    return max(BATCH, min(MOST_CELLS // len(spec.schema), MOST_LOGITS // spec.num_classes))


def model_settings(model: CategoricalModel, spec: DataSpec, asked: Sample) -> dict[str, Any]:
    """Return the arguments of the model's own `sample`; raise a ValueError for settings that it has no use for."""
    check_able(model, asked)
    settings: dict[str, Any] = {}
    shape = sample_shape(spec, asked, is_sequential=model.stepper is not None)
    if shape is not None:
        settings["event_shape"] = shape
    if asked.known is not None:
        settings["known"] = as_classes(asked.known, "known")
    cond = asked_labels(spec, asked.label)
    if cond is not None:
        settings["cond"] = cond
    if asked.guidance != 1:
        if cond is None:
            raise ValueError("`guidance` says how much labels count; give labels with `label`")
        settings["guidance"] = asked.guidance
    if model.denoiser is not None:
        settings |= {"sampler": asked.sampler, "top_p": asked.top_p, "greedy_tail": asked.greedy_tail}
        if asked.budget is not None:
            if asked.sampler != "entropy-bounded":
                raise ValueError(f"`budget` {asked.budget:g} is for the sampler entropy-bounded; set `sampler` to it")
            settings["budget"] = asked.budget
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


def sample_shape(spec: DataSpec, asked: Sample, *, is_sequential: bool = False) -> tuple[int, ...] | None:
    """Return the shape that is asked for; None is the model's own. A sequential model draws ends by itself."""
    if not spec.is_map:
        for name in ("height", "width"):
            if getattr(asked, name) is not None:
                raise ValueError(f"`{name}` is for maps; the examples of {spec.name} are sequences, give `length`")
        if asked.length is not None and spec.ends and asked.known is None and is_sequential:
            raise ValueError("samples of this model end by themselves; leave out `length`")
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
        ("budget", is_diffusion, "diffusions"),
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
