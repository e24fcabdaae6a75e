"""Bits per dimension of a split, with its standard error and what kind of number it is."""

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.evaluate.scorer import Scorer
from unordinal.model import CategoricalModel, device_of, evaluating
from unordinal.names import counted
from unordinal.numerics import standard_error
from unordinal.progress import Progress, silent

Times = Literal["stratified", "all"]
Bound = Literal["elbo", "iwbo"]


@dataclass(frozen=True)
class Score:
    """A number one can cite: what it is, over what, and how sure."""

    bits_per_dim: float
    standard_error: float | None  # None for a single example
    kind: str  # exact, elbo or iwbo-K
    split: str
    num_examples: int
    seconds: float
    method: str  # how the expectation was taken
    per_example: tuple[float, ...] | None = None  # None of a bound whose examples were not drawn often enough to tell
    per_example_error: tuple[float, ...] | None = None  # of each example's draws; None where it was scored once
    dimensions: int = 1  # positions of an example
    unit: str = "bits per dimension"

    def to_dict(self) -> dict[str, Any]:
        left_out = ("per_example", "per_example_error", "dimensions")
        values = {name: value for name, value in vars(self).items() if name not in left_out}
        return {**values, "nats_per_example": self.nats_per_example}

    @property
    def nats_per_example(self) -> float:
        return self.bits_per_dim * math.log(2) * self.dimensions

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        over = f"{counted(self.num_examples, 'example')} of {self.split}"
        return f"{self.bits_per_dim:.4f}{error} {self.unit} ({self.kind}, {self.method}; {over})"


def check_bound(bound: str, k: int) -> None:
    if bound not in ("elbo", "iwbo"):
        raise ValueError(f"unknown bound {bound!r}; expected elbo or iwbo")
    if k < 1:
        raise ValueError(f"the importance-weighted bound needs k of at least 1 draw, got {k}")


def kind_of(model: CategoricalModel, bound: str, k: int) -> str:
    if bound == "iwbo":
        return f"iwbo-{k}"
    return "exact" if model.is_exact else "elbo"


@dataclass(frozen=True)
class Values:
    """The bits per dimension of each example, (N,) float64, and how they were found."""

    bits: Tensor
    method: str
    rank: Tensor | None = None  # of each example in the spread of its times
    error: Tensor | None = None  # of each example, (N,), where it was drawn often enough to tell


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
    batch_size: int = 32,
    seed: int = 0,
    unit: str = "bits per dimension",
    progress: Progress = silent,
) -> Score:
    """Score the first `num_examples` of a split (all by default) in eval mode, reproducibly for a seed.

    `bound="iwbo"` is the importance-weighted bound of `k` draws, for models that have `log_weight`. For diffusion the
    ELBO is a sum over T times. `times="all"` computes every term, so that only x_t is Monte Carlo; `stratified`
    computes `repeats` of them per example (1 by default), spread evenly over time and over the examples. With
    `per_example` a bound is drawn until the examples can be told apart, and each has an error of its own; without it
    the score of a bound holds no single examples, since one draw of each says next to nothing.
    """
    began = time.monotonic()
    settings: Any = {"bound": bound, "k": k, "times": times, "in_order": in_order, "repeats": repeats}
    settings |= {"num_examples": num_examples, "batch_size": batch_size, "seed": seed, "progress": progress}
    values = score_values(model, split, split_name=split_name, per_example=per_example, **settings)
    every_time = model.abilities.times and times == "all"
    is_told = model.is_exact or bound == "iwbo" or every_time or values.error is not None
    return Score(
        bits_per_dim=float(values.bits.mean()),
        standard_error=standard_error(values.bits, values.rank),
        kind=kind_of(model, bound, k),
        split=split_name,
        num_examples=len(values.bits),
        seconds=time.monotonic() - began,
        method=values.method,
        per_example=tuple(values.bits.tolist()) if is_told else None,
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
    batch_size: int = 32,
    seed: int = 0,
    progress: Progress = silent,
) -> Values:
    """The bits per dimension of each example; the settings are those of `score_split`."""
    check_request(model, split, split_name, num_examples, bound, k, repeats)
    if in_order and bound == "iwbo":
        raise ValueError("scoring in order is for exact likelihoods, not for the importance-weighted bound")
    draws = 1 if repeats is None else repeats
    num = num_examples or len(split)
    device = device_of(model)
    scorer = Scorer(model, split, num, batch_size, device)
    rank = error = None
    with evaluating(model), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        if in_order:
            nats = scorer.in_order(progress)
            method = "in order, with a memory of earlier examples; the error takes examples as independent"
        elif bound == "iwbo":
            nats, method = scorer.importance_weighted(k, progress), f"{counted(k, 'draw')} per example"
        elif model.is_exact:
            nats, method = scorer.plain(1, progress), "one pass"
        elif model.abilities.times and times == "all":
            nats, method = scorer.all_times(draws, progress), f"all {model.abilities.num_times} times"
        elif per_example:
            nats, error, draws = scorer.until_told_apart(repeats, progress)
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
    """Refuse what cannot be scored."""
    check_bound(bound, k)
    if num_examples is not None and num_examples < 1:
        raise ValueError(f"`num_examples` must be at least 1, got {num_examples}")
    if repeats is not None and repeats < 1:
        raise ValueError(f"`repeats` must be at least 1, got {repeats}")
    if len(split) == 0:
        raise ValueError(f"the {split_name} split holds no whole example")
    if num_examples is not None and num_examples > len(split):
        raise ValueError(f"asked for {num_examples} examples, but the {split_name} split has {len(split)}")
    check_exactness(model, bound, repeats or 1)


def check_exactness(model: CategoricalModel, bound: Bound, repeats: int) -> None:
    if model.is_exact and (bound == "iwbo" or repeats > 1):
        raise ValueError("this model's likelihood is exact: there is no tighter bound, and nothing to repeat")
