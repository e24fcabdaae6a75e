"""Score a model on a split: bits per dimension with a standard error and the kind of result (exact, ELBO, IWBO)."""

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.evaluate.scorer import Scorer, order_of
from unordinal.model import CategoricalModel, device_of, evaluating
from unordinal.names import counted
from unordinal.numerics import standard_error
from unordinal.parallel.group import current_group
from unordinal.progress import Progress, silent

Times = Literal["stratified", "all"]
Bound = Literal["elbo", "iwbo"]
Order = Literal["left-to-right", "right-to-left", "random"]


@dataclass(frozen=True)
class Score:
    """The score of a model on a split, with all that is needed to cite it.

    Args:
        bits_per_dim: the mean of -log2 p(x), or of a bound on it, per position; lower is better.
        standard_error: the standard error of `bits_per_dim`; None for a single example.
        kind: the kind of result: exact, elbo, iwbo-K for the importance-weighted bound with K draws, or exact with the
            order in which positions are drawn, which is the likelihood of the model that draws in this order.
        split: the name of the split.
        num_examples: how many examples were scored.
        seconds: how long scoring took.
        method: how the expectation over the model's random draws was estimated.
        per_example: the bits per dimension of each example; None for a bound with too few draws of each example.
        per_example_error: the standard error of each value of `per_example`; None if there is one value per example.
        dimensions: the number of positions of an example.
        unit: the unit of `bits_per_dim`, such as "bits per character".

    >>> score = Score(1.75, 0.02, "elbo", "test", num_examples=100, seconds=3.0, method="1 draw per example")
    >>> print(score)
    1.7500 ± 0.0200 bits per dimension (elbo, 1 draw per example; 100 examples of test)
    """

    bits_per_dim: float
    standard_error: float | None
    kind: str
    split: str
    num_examples: int
    seconds: float
    method: str
    per_example: tuple[float, ...] | None = None
    per_example_error: tuple[float, ...] | None = None
    dimensions: int = 1
    unit: str = "bits per dimension"

    def to_dict(self) -> dict[str, Any]:
        """Return the score without the values of single examples, as plain values that can be written as JSON."""
        left_out = ("per_example", "per_example_error", "dimensions")
        values = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**values, "nats_per_example": self.nats_per_example}

    @property
    def nats_per_example(self) -> float:
        """The score in nats per example, summed over its positions."""
        return self.bits_per_dim * math.log(2) * self.dimensions

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        over = f"{counted(self.num_examples, 'example')} of {self.split}"
        return f"{self.bits_per_dim:.4f}{error} {self.unit} ({self.kind}, {self.method}; {over})"


def check_bound(bound: str, k: int) -> None:
    """Raise a ValueError if the bound is unknown or `k` is not positive."""
    if bound not in ("elbo", "iwbo"):
        raise ValueError(f"unknown bound {bound!r}; expected elbo or iwbo")
    if k < 1:
        raise ValueError(f"the importance-weighted bound needs `k` of at least 1 draw, got {k}")


def kind_of(model: CategoricalModel, bound: str, k: int) -> str:
    """Return the kind of result that scoring a model with a bound gives: exact, elbo or iwbo-K."""
    if bound == "iwbo":
        return f"iwbo-{k}"
    return "exact" if model.is_exact else "elbo"


@dataclass(frozen=True)
class Values:
    """The scores of single examples and how they were estimated."""

    bits: Tensor  # bits per dimension, (N,) float64
    method: str
    rank: Tensor | None = None  # of each example in the order of their stratified times, (N,); else None
    error: Tensor | None = None  # the standard error of each example, (N,); None if there is one value per example


def score_split(
    model: CategoricalModel,
    split: Split,
    *,
    split_name: str = "test",
    num_examples: int | None = None,
    bound: Bound = "elbo",
    k: int = 1000,
    times: Times = "stratified",
    in_order: bool = False,
    repeats: int | None = None,
    per_example: bool = False,
    order: Order | None = None,
    batch_size: int = 32,
    seed: int = 0,
    unit: str = "bits per dimension",
    progress: Progress = silent,
) -> Score:
    """Score a model on the examples of a split, in eval mode and reproducibly for a seed.

    Processes that torchrun started together share the examples, and each returns the score of all of them.

    Args:
        model: the model to score.
        split: the examples.
        split_name: the name of the split, for the result.
        num_examples: how many examples to score, from the start of the split; all by default.
        bound: elbo, or iwbo for the importance-weighted bound, which models with `log_weight` have.
        k: how many draws per example the importance-weighted bound has.
        times: how the sum over the times of a diffusion model is estimated: `all` computes every term, so that only x_t
            is random; `stratified` computes `repeats` of them per example, spread evenly over time and examples.
        in_order: score each example of a text given a memory of those before it, for models that have one.
        repeats: how many draws estimate the ELBO of an example; 1 by default.
        per_example: draw a bound until the examples differ clearly, and estimate the error of each. Without it the
            score of a bound has no values of single examples, because one draw of each is too noisy.
        order: score the exact log-probability when positions are drawn in this order: left-to-right, right-to-left, or
            random, which is one order for all examples. For absorbing diffusions whose network reads no time.
        batch_size: how many examples are scored at a time.
        seed: the seed of the random numbers.
        unit: the unit of the score, for the result.
        progress: receives the progress of scoring.

    Returns:
        The score.
    """
    began = time.monotonic()
    settings: Any = {"bound": bound, "k": k, "times": times, "in_order": in_order, "repeats": repeats, "order": order}
    settings |= {"num_examples": num_examples, "batch_size": batch_size, "seed": seed, "progress": progress}
    values = score_values(model, split, split_name=split_name, per_example=per_example, **settings)
    every_time = model.abilities.times and times == "all"
    has_examples = model.is_exact or order or bound == "iwbo" or every_time or values.error is not None
    return Score(
        bits_per_dim=float(values.bits.mean()),
        standard_error=standard_error(values.bits, values.rank),
        kind=kind_of(model, bound, k) if order is None else f"exact (order {order})",
        split=split_name,
        num_examples=len(values.bits),
        seconds=time.monotonic() - began,
        method=values.method,
        per_example=tuple(values.bits.tolist()) if has_examples else None,
        per_example_error=None if values.error is None else tuple(values.error.tolist()),
        dimensions=split[0].numel(),
        unit=unit,
    )


@torch.no_grad()
def score_values(
    model: CategoricalModel,
    split: Split,
    *,
    split_name: str = "test",
    num_examples: int | None = None,
    bound: Bound = "elbo",
    k: int = 1000,
    times: Times = "stratified",
    in_order: bool = False,
    repeats: int | None = None,
    per_example: bool = False,
    order: Order | None = None,
    batch_size: int = 32,
    seed: int = 0,
    progress: Progress = silent,
) -> Values:
    """Return the bits per dimension of each example; `score_split` describes the arguments."""
    check_request(model, split, split_name, num_examples, bound, k, repeats)
    if in_order and bound == "iwbo":
        raise ValueError(
            "`in_order` is for exact likelihoods, not for the importance-weighted bound; leave one of them out"
        )
    if order is not None and (in_order or bound == "iwbo" or repeats is not None):
        raise ValueError("`order` gives an exact likelihood; leave out `in_order`, `bound` iwbo and `repeats`")
    draws = 1 if repeats is None else repeats
    num = num_examples or len(split)
    device = device_of(model)
    scorer = Scorer(model, split, num, batch_size, device, seed, current_group())
    rank = error = None
    with evaluating(model), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        if order is not None:
            nats = scorer.of_order(order_of(order, split[0].numel(), seed), progress)
            method = "one position per network call"
        elif in_order:
            nats = scorer.in_order(progress)
            method = "in order, with a memory of earlier examples; the error takes examples as independent"
        elif bound == "iwbo":
            nats, method = scorer.importance_weighted(k, progress), f"{counted(k, 'draw')} per example"
        elif model.is_exact:
            nats, method = scorer.plain(1, progress), "one pass"
        elif model.abilities.times and times == "all":
            nats, method = scorer.all_times(draws, progress), f"all {model.abilities.num_times} times"
        elif per_example:
            nats, error, draws = scorer.until_reliable(repeats, progress)
            method = f"{counted(draws, 'draw')} per example"
        elif model.abilities.times:
            nats, rank = scorer.stratified_times(draws, progress)
            of_all = "" if model.abilities.num_times is None else f" of {model.abilities.num_times}"
            method = f"stratified times, {draws}{of_all} per example"
        else:
            nats, method = scorer.plain(draws, progress), f"{counted(draws, 'draw')} per example"
    to_bits = 1 / (math.log(2) * split[0].numel())
    return Values(nats * to_bits, method, rank, None if error is None else error * to_bits)


def check_request(
    model: CategoricalModel,
    split: Split,
    split_name: str,
    num_examples: int | None,
    bound: Bound,
    k: int,
    repeats: int | None,
) -> None:
    """Raise a ValueError if the arguments of `score_split` do not fit together."""
    check_bound(bound, k)
    if num_examples is not None and num_examples < 1:
        raise ValueError(f"`num_examples` must be at least 1, got {num_examples}")
    if repeats is not None and repeats < 1:
        raise ValueError(f"`repeats` must be at least 1, got {repeats}")
    if len(split) == 0:
        raise ValueError(f"the {split_name} split has no complete example")
    if num_examples is not None and num_examples > len(split):
        raise ValueError(f"`num_examples` is {num_examples}, but the {split_name} split has only {len(split)}")
    check_exactness(model, bound, repeats or 1)


def check_exactness(model: CategoricalModel, bound: Bound, repeats: int) -> None:
    """Raise a ValueError if the model has an exact likelihood, which leaves nothing to estimate by several draws."""
    if model.is_exact and (bound == "iwbo" or repeats > 1):
        raise ValueError("this model's likelihood is exact: leave out `bound` iwbo and `repeats`, which are for bounds")
