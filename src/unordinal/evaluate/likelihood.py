"""Bits per dimension of a split, with its standard error and what kind of number it is."""

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.times import spread_positions
from unordinal.model import CategoricalModel, device_of, evaluating
from unordinal.progress import Advance, Progress, silent

Times = Literal["stratified", "all"]
Bound = Literal["elbo", "iwbo"]
SYMBOLS_PER_CALL = 8192  # of importance samples, all examples and draws together: bounds the memory for any k


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
    per_example: tuple[float, ...]
    dimensions: int = 1  # positions of an example

    def to_dict(self) -> dict[str, Any]:
        values = {name: value for name, value in vars(self).items() if name not in ("per_example", "dimensions")}
        return {**values, "nats_per_example": self.nats_per_example, "unit": "bits per dimension"}

    @property
    def nats_per_example(self) -> float:
        return self.bits_per_dim * math.log(2) * self.dimensions

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        over = f"{self.num_examples} examples of {self.split}"
        return f"{self.bits_per_dim:.4f}{error} bits per dimension ({self.kind}, {self.method}; {over})"


def check_bound(bound: str, k: int) -> None:
    if bound not in ("elbo", "iwbo"):
        raise ValueError(f"unknown bound {bound!r}; expected elbo or iwbo")
    if k < 1:
        raise ValueError(f"the importance-weighted bound needs k of at least 1 draw, got {k}")


def kind_of(model: CategoricalModel, bound: str, k: int) -> str:
    if bound == "iwbo":
        return f"iwbo-{k}"
    return "exact" if model.is_exact else "elbo"


def counted(repeats: int) -> str:
    return "1 draw per example" if repeats == 1 else f"{repeats} draws per example"


def iwbo(model: CategoricalModel, x: Tensor, k: int, rows: int, advance: Advance) -> tuple[Tensor, Tensor]:
    """log mean of k importance weights of each example, and its variance by the delta method: two (B,) float64.

    At most `rows` examples go through the model at a time, whatever k is.
    """
    total = torch.full((len(x),), -math.inf, dtype=torch.float64)
    squares = total.clone()
    draws = max(1, rows // len(x))
    for start in range(0, k, draws):
        num = min(draws, k - start)
        log_w = model.log_weight(x.repeat(num, *([1] * (x.dim() - 1)))).double().cpu().view(num, len(x))
        total = torch.logaddexp(total, torch.logsumexp(log_w, dim=0))
        squares = torch.logaddexp(squares, torch.logsumexp(2 * log_w, dim=0))
        advance(num * len(x))
    return total - math.log(k), (torch.exp(squares - 2 * total) - 1 / k).clamp(min=0)


@torch.no_grad()
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
    repeats: int = 1,
    batch_size: int = 32,
    seed: int = 0,
    progress: Progress = silent,
) -> Score:
    """Score the first `num_examples` of a split (all by default) in eval mode, reproducibly for a seed.

    `bound="iwbo"` is the importance-weighted bound of `k` draws, for models that have `log_weight`. For diffusion the
    ELBO is a sum over T times. `times="all"` computes every term, so that only x_t is Monte Carlo; `stratified`
    computes `repeats` of them per example, spread evenly over time and over the examples.
    """
    check_bound(bound, k)
    if num_examples is not None and num_examples < 1:
        raise ValueError(f"`num_examples` must be at least 1, got {num_examples}")
    if repeats < 1:
        raise ValueError(f"`repeats` must be at least 1, got {repeats}")
    if len(split) == 0:
        raise ValueError(f"the {split_name} split holds no whole example")
    if num_examples is not None and num_examples > len(split):
        raise ValueError(f"asked for {num_examples} examples, but the {split_name} split has {len(split)}")
    check_exactness(model, bound, repeats)
    if in_order and bound == "iwbo":
        raise ValueError("scoring in order is for exact likelihoods, not for the importance-weighted bound")
    num = num_examples or len(split)
    device = device_of(model)
    began = time.monotonic()
    scorer = Scorer(model, split, num, batch_size, device)
    with evaluating(model), torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        rank = None
        if in_order:
            nats = scorer.in_order(progress)
            method = "in order, with a memory of earlier examples; the error takes examples as independent"
        elif bound == "iwbo":
            nats, method = scorer.importance_weighted(k, progress), f"{k} draws per example"
        elif model.abilities.times and times == "all":
            nats, method = scorer.all_times(repeats, progress), f"all {model.abilities.num_times} times"
        elif model.abilities.times:
            nats, rank = scorer.stratified_times(repeats, progress)
            of_all = "" if model.abilities.num_times is None else f" of {model.abilities.num_times}"
            method = f"stratified times, {repeats}{of_all} per example"
        else:
            nats = scorer.plain(repeats, progress)
            method = "one pass" if model.is_exact else counted(repeats)
    bits = nats / (math.log(2) * split[0].numel())
    return Score(
        bits_per_dim=float(bits.mean()),
        standard_error=standard_error(bits, rank),
        kind=kind_of(model, bound, k),
        split=split_name,
        num_examples=num,
        seconds=time.monotonic() - began,
        method=method,
        per_example=tuple(bits.tolist()),
        dimensions=split[0].numel(),
    )


def check_exactness(model: CategoricalModel, bound: Bound, repeats: int) -> None:
    if model.is_exact and (bound == "iwbo" or repeats > 1):
        raise ValueError("this model's likelihood is exact: there is no tighter bound, and nothing to repeat")


def standard_error(values: Tensor, rank: Tensor | None = None) -> float | None:
    """Of the mean of `values` (N,). With `rank`, values are stratified along it and neighbours share a stratum.

    Stratified values vary with time far more than their mean does; successive differences along the strata leave that
    part out (and, where the strata differ, err on the large side).
    """
    num = len(values)
    if num < 2:
        return None
    if rank is None:
        return float(values.std() / math.sqrt(num))
    ordered = values[torch.argsort(rank)]
    variance = ordered.diff().square().sum() / (2 * (num - 1))
    return float((variance / num).sqrt())


@dataclass(frozen=True)
class Scorer:
    """The first `num` examples of a split, scored one way or another; each method gives (num,) nats in float64."""

    model: CategoricalModel
    split: Split
    num: int
    batch_size: int
    device: torch.device

    def batch(self, start: int) -> tuple[Tensor, slice]:
        rows = slice(start, min(start + self.batch_size, self.num))
        return self.split.examples(np.arange(rows.start, rows.stop)).to(self.device), rows

    def plain(self, repeats: int, progress: Progress) -> Tensor:
        """Minus the model's own ELBO, averaged over `repeats` draws."""
        nats = torch.zeros(self.num, dtype=torch.float64)
        with progress("Scoring", self.num * repeats) as advance:
            for start in range(0, self.num, self.batch_size):
                x, rows = self.batch(start)
                for _ in range(repeats):
                    nats[rows] -= self.model.elbo(x).double().cpu() / repeats
                    advance(len(x))
        return nats

    def in_order(self, progress: Progress) -> Tensor:
        """Minus the exact log-probability of each example given a memory of those before it in the text."""
        if not self.model.abilities.in_order or self.split.length is None:
            raise ValueError("only a text under a model with a memory (arm-xl) can be scored in order")
        nats, past = torch.zeros(self.num, dtype=torch.float64), None
        with progress("Scoring", self.num) as advance:
            for start in range(0, self.num, self.batch_size):
                x, rows = self.batch(start)
                log_p, past = self.model.log_prob_in_order(x, past)
                nats[rows] = -log_p.double().cpu()
                advance(len(x))
        return nats

    def importance_weighted(self, k: int, progress: Progress) -> Tensor:
        """Minus the log of the mean of `k` importance weights, a bounded number of draws at a time."""
        rows = max(self.batch_size, SYMBOLS_PER_CALL // self.split[0].numel())
        nats = torch.zeros(self.num, dtype=torch.float64)
        with progress("Scoring", self.num * k) as advance:
            for start in range(0, self.num, max(1, rows // k)):
                chosen = slice(start, min(start + max(1, rows // k), self.num))
                x = self.split.examples(np.arange(chosen.start, chosen.stop)).to(self.device)
                nats[chosen] = -iwbo(self.model, x, k, rows, advance)[0]
        return nats

    def stratified_times(self, repeats: int, progress: Progress) -> tuple[Tensor, Tensor]:
        """The mean of the bound at `repeats` times per example; and each example's rank in time."""
        generator = torch.Generator().manual_seed(torch.initial_seed())
        position, rank = spread_positions(self.num, repeats, generator)
        nats = torch.zeros(self.num, dtype=torch.float64)
        with progress("Scoring", self.num * repeats) as advance:
            for start in range(0, self.num, self.batch_size):
                x, rows = self.batch(start)
                for repeat in range(repeats):
                    nats[rows] -= self.model.elbo_at(x, position[rows, repeat]).double().cpu() / repeats
                    advance(len(x))
        return nats, rank

    def all_times(self, repeats: int, progress: Progress) -> Tensor:
        """The mean of the bound over every one of its times, for every example."""
        num_times = self.model.abilities.num_times
        if num_times is None:
            raise ValueError("time is continuous in this model, so there is no list of all times; use stratified ones")
        every = (torch.arange(num_times, dtype=torch.float64) + 0.5).repeat(repeats) / num_times
        nats = torch.zeros(self.num, dtype=torch.float64)
        with progress("Scoring", self.num * len(every)) as advance:
            for index in range(self.num):
                x = self.split.examples(np.array([index])).to(self.device)
                for part in every.split(self.batch_size):
                    bounds = self.model.elbo_at(x.expand(len(part), *x.shape[1:]), part)
                    nats[index] -= float(bounds.double().sum()) / len(every)
                    advance(len(part))
        return nats
