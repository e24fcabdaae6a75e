"""Score a model on a split: bits per dimension with a standard error and the kind of result (exact, ELBO, IWBO)."""

import math
import time
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.ordered import Ordered
from unordinal.evaluate.score import LeastBits, Score
from unordinal.evaluate.scorer import Interval, Scorer, order_of, ranking_of
from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import LEAST_EFFECTIVE
from unordinal.names import counted
from unordinal.numerics import standard_error
from unordinal.parallel.group import current_group
from unordinal.settings import PYTHON_ONLY, BatchSize, Flag, Range, Request, Seed

FIXED = ("left-to-right", "right-to-left", "random")  # orders that do not depend on the example
ALL_ORDERS = "all-orders"
EXACT = "exact"  # the name of the split that is every x weighted by its probability


@dataclass(frozen=True)
class Evaluate(Request):
    """Score a run: bits per dimension with their standard error."""

    data: Annotated[Any, Flag(metavar="DATA")] = None
    """Other data than the run's own: a path or a data set by name, an array of classes (N, *D), or a `Data`. Texts are
    encoded with the run's vocabulary; arrays and maps have its classes."""
    split: Literal["train", "val", "test", "exact"] | None = None
    """Part of the data to score; default test, or all of other data that have no split of their own. exact is every x
    weighted by its probability, for data whose probabilities are known."""
    bound: Literal["elbo", "iwbo", "interval"] = "elbo"
    """The evidence lower bound; the tighter importance-weighted one of `k` draws (not for every model); or the latter
    with an upper bound on the likelihood from the same draws, if they are even enough."""
    k: Annotated[int, Range(1)] = 1000
    """Importance samples per example, with `bound` iwbo or interval; memory does not grow with it."""
    in_order: bool = False
    """Transformer-XL: score the text's chunks in their order, each with a memory of those before it."""
    order: (
        Literal["left-to-right", "right-to-left", "random", "confidence", "entropy", "margin", "all-orders"] | None
    ) = None
    """Masked diffusion: the exact likelihood of the sampler that shows positions in this order. random is one order for
    all examples; confidence, entropy and margin show the positions first of which the network is surest; all-orders
    draws the order within each block at random, and sums over all orders, for blocks of at most 4 positions."""
    calls: Annotated[int | None, Range(1)] = None
    """With `order`: the network calls of the sampler, which shows several positions in each; default one position per
    call."""
    budget: Annotated[float | None, Range(0)] = None
    """With `order` entropy: the nats of entropy of a call, as those of the sampler entropy-bounded; `calls` is then the
    most calls."""
    times: Literal["stratified", "all"] = "stratified"
    """Diffusion: spread times over the examples, or compute every one of the T terms."""
    repeats: Annotated[int | None, Range(1)] = None
    """Draws of the bound per example (diffusion: times, or with `times` all draws of x_t); default 1, 16 with `split`
    exact, and with `per_example` enough to tell examples apart."""
    num_examples: Annotated[int | None, Range(1)] = None
    """Score only the first N examples; default the whole split."""
    batch_size: BatchSize = 32
    """Examples per network call."""
    seed: Seed = 0
    """Seed of the draws."""
    per_example: Annotated[bool, PYTHON_ONLY] = False
    """Draw a bound until the examples differ clearly, and estimate the error of each. Without it the score of a bound
    has no values of single examples, because one draw of each is too noisy."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.is_weighted and self.repeats is not None:
            raise ValueError(f"`repeats` {self.repeats} is for the ELBO; with `bound` {self.bound} give `k`")
        if self.bound == "interval" and (self.split == EXACT or self.k < LEAST_EFFECTIVE):
            what = "leave out `split` exact" if self.split == EXACT else f"needs `k` of at least {LEAST_EFFECTIVE:g}"
            raise ValueError(f"`bound` interval is for examples with many draws of each; {what}")
        if self.in_order and (self.is_weighted or self.split == EXACT):
            raise ValueError("`in_order` is for exact likelihoods of a text; leave out `bound` iwbo and `split` exact")
        if self.calls is not None and self.order in (None, "right-to-left", "random", ALL_ORDERS):
            raise ValueError("`calls` is for `order` left-to-right, confidence, entropy and margin; leave it out")
        if self.budget is not None and self.order != "entropy":
            raise ValueError(f"`budget` {self.budget:g} is for `order` entropy; leave it out")
        if self.order is not None and (self.in_order or self.is_weighted or self.repeats is not None):
            raise ValueError("`order` gives an exact likelihood; leave out `in_order`, `bound` iwbo and `repeats`")
        if self.num_examples is not None and self.split == EXACT:
            raise ValueError(f"`split` exact scores every x; leave out `num_examples` {self.num_examples}")

    @property
    def is_weighted(self) -> bool:
        """Whether importance weights are drawn."""
        return self.bound != "elbo"


def kind_of(model: CategoricalModel, asked: Evaluate, split: Split | None = None) -> str:
    """Return the kind of result that scoring a model gives: exact, elbo, iwbo-K, or exact in an order of positions.

    A text can be written with tokens in several ways. The likelihood of the one way that is scored is less than that of
    the text, which the kind says.
    """
    if asked.is_weighted:
        return f"iwbo-{asked.k}"
    if asked.order is None and not model.is_exact:
        return "elbo"
    of = "" if split is None or split.widths is None else " of the tokens"
    if asked.order == ALL_ORDERS:
        return f"exact{of} (random order in each block)"
    if asked.order is None or (asked.order in FIXED and asked.calls is None):
        return f"exact{of}" if asked.order is None else f"exact{of} (order {asked.order})"
    if asked.budget is not None:
        most = "" if asked.calls is None else f", at most {asked.calls} calls"
        return f"exact{of} (entropy-bounded, {asked.budget:g} nats{most})"
    return f"exact{of} ({asked.order}, {'one position per call' if asked.calls is None else f'{asked.calls} calls'})"


def mean_tokens(model: CategoricalModel, split: Split, num: int) -> float | None:
    """Return the mean number of tokens of the first `num` examples; None if their symbols are characters."""
    if split.widths is None:
        return None
    return float(model.num_symbols(split.examples(np.arange(num))).double().mean())


@dataclass(frozen=True)
class Values:
    """The scores of single examples and how they were estimated."""

    bits: Tensor  # bits of each example over the mean number of its symbols, (N,) float64; their mean is the score
    method: str
    sizes: Tensor  # the number of symbols of each example over their mean, (N,); all 1 unless examples end early
    rank: Tensor | None = None  # of each example in the order of their stratified times, (N,); else None
    error: Tensor | None = None  # the standard error of each example, (N,); None if there is one value per example
    least: LeastBits | None = None

    @property
    def standard_error(self) -> float | None:
        """The standard error of the score, all bits over all symbols."""
        return error_of(self.bits, self.sizes, self.rank)


def error_of(bits: Tensor, sizes: Tensor, rank: Tensor | None = None) -> float | None:
    """Return the standard error of all bits over all symbols; see `Values` for the arguments."""
    return standard_error(bits - bits.mean() * sizes, rank)


def score_split(
    model: CategoricalModel,
    split: Split,
    asked: Evaluate | None = None,
    *,
    split_name: str = "test",
    unit: str = "bits per dimension",
    whole_unit: str = "",
) -> Score:
    """Score a model on the examples of a split, in eval mode and reproducibly for a seed.

    Processes that torchrun started together share the examples, and each returns the score of all of them.

    Args:
        model: the model to score.
        split: the examples.
        asked: what to compute; by default the bound of all examples, with one draw each.
        split_name: the name of the split, for the result.
        unit: the unit of the score, for the result.
        whole_unit: the unit of the bits of a whole example, for the result.

    Returns:
        The score.
    """
    asked, began = asked or Evaluate(), time.monotonic()
    values = score_values(model, split, asked, split_name)
    every_time = model.times is not None and asked.times == "all"
    has_examples = model.is_exact or asked.order or asked.is_weighted or every_time or values.error is not None
    return Score(
        bits_per_dim=float(values.bits.mean()),
        standard_error=values.standard_error,
        kind=kind_of(model, asked, split),
        split=split_name,
        num_examples=len(values.bits),
        seconds=time.monotonic() - began,
        method=values.method,
        per_example=tuple((values.bits / values.sizes).tolist()) if has_examples else None,
        per_example_error=None if values.error is None else tuple((values.error / values.sizes).tolist()),
        dimensions=float(scored_symbols(model, split, len(values.bits)).double().mean()),
        unit=unit,
        whole_unit=whole_unit,
        tokens=mean_tokens(model, split, len(values.bits)),
        least=values.least,
    )


def score_values(model: CategoricalModel, split: Split, asked: Evaluate, split_name: str = "test") -> Values:
    """Return the bits per dimension of each example; `score_split` describes the arguments."""
    check_exactness(model, asked)
    if len(split) == 0:
        raise ValueError(f"the {split_name} split has no complete example")
    num = len(split) if asked.num_examples is None else asked.num_examples
    if num > len(split):
        raise ValueError(f"`num_examples` is {num}, but the {split_name} split has only {len(split)}")
    draws, progress, times = asked.repeats or 1, asked.progress, model.times
    scorer = Scorer(model, split, num, asked.batch_size, device_of(model), asked.seed, current_group())
    rank = error = least = None
    if asked.order == ALL_ORDERS:
        nats, method = scorer.of_order(None, progress), "one position per network call, all orders summed"
    elif asked.order is not None and (asked.order not in FIXED or asked.calls is not None):
        sampler = Ordered(asked.calls, ranking_of(asked.order), asked.budget)
        nats, method = scorer.of_order(sampler, progress), scorer.stability(sampler)
    elif asked.order is not None:
        nats = scorer.of_order(order_of(asked.order, split[0].numel(), asked.seed), progress)
        method = "one position per network call"
    elif asked.in_order:
        nats = scorer.in_order(progress)
        method = "in order, with a memory of earlier examples; the error takes examples as independent"
    elif asked.is_weighted:
        by = "" if model.weight_factors is None else " of a block"
        interval = scorer.importance_weighted(asked.k, progress)
        nats, method = -interval.lower, f"{counted(asked.k, 'draw')} per example{by}"
    elif model.is_exact:
        nats, method = scorer.exact(progress), "one pass"
    elif times is not None and asked.times == "all":
        nats, method = scorer.all_times(draws, progress), f"all {times.num} times"
    elif asked.per_example:
        nats, error, draws = scorer.until_reliable(asked.repeats, progress)
        method = f"{counted(draws, 'draw')} per example"
    else:
        nats, rank = scorer.averaged(draws, progress)
        of_all = "" if times is None or times.num is None else f" of {times.num}"
        method = f"{counted(draws, 'draw')} per example" if times is None else f"{draws}{of_all} per example"
        method = method if times is None else f"stratified times, {method}"
    symbols = scored_symbols(model, split, num).double()
    to_bits = 1 / (math.log(2) * float(symbols.mean()))
    sizes = (symbols / symbols.mean()).clamp(min=1e-9)  # an example without symbols has no bits per symbol
    if asked.bound == "interval":
        least = least_bits(interval, to_bits, sizes)
    return Values(nats * to_bits, method, sizes, rank, None if error is None else error * to_bits, least)


def least_bits(interval: Interval, to_bits: float, sizes: Tensor) -> LeastBits:
    """Return what an upper bound on the likelihoods of examples says, if their weights are even enough.

    Args:
        interval: the bounds of each example.
        to_bits: the factor that makes bits per dimension of nats.
        sizes: the number of symbols of each example over their mean, (N,).
    """
    num_uneven, bits = int((~interval.is_even).sum()), -interval.upper * to_bits
    mean, error = (None, None) if num_uneven else (float(bits.mean()), error_of(bits, sizes))
    return LeastBits(mean, error, float(interval.effective.min()), float(interval.share.max()), num_uneven)


def scored_symbols(model: CategoricalModel, split: Split, num: int) -> Tensor:
    """Return the number of symbols of the first `num` examples, without those after their ends: (num,).

    Where symbols stand for several characters, as tokens do, it is the number of characters.
    """
    return torch.from_numpy(split.sizes(np.arange(num), model.num_classes if model.ends else None))


def check_exactness(model: CategoricalModel, asked: Evaluate) -> None:
    """Raise a ValueError if the model has an exact likelihood, which leaves nothing to estimate by several draws."""
    if model.is_exact and (asked.is_weighted or (asked.repeats or 1) > 1):
        raise ValueError(
            "this model's likelihood is exact: leave out `bound` and `repeats`, which are for models with bounds"
        )
    if asked.is_weighted and model.weights is None:
        raise ValueError(f"{type(model).__name__} has no importance weights; leave out `bound` {asked.bound}")
