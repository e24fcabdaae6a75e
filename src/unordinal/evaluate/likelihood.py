"""Bits per dimension of a split, with its standard error and what kind of number it is."""

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.times import spread_times
from unordinal.model import CategoricalModel
from unordinal.models.diffusion import MultinomialDiffusion
from unordinal.progress import Advance, Progress, silent

Times = Literal["stratified", "all"]


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

    def to_dict(self) -> dict[str, Any]:
        values = {name: value for name, value in vars(self).items() if name != "per_example"}
        return {**values, "unit": "bits per dimension"}

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        over = f"{self.num_examples} examples of {self.split}"
        return f"{self.bits_per_dim:.4f}{error} bits per dimension ({self.kind}, {self.method}; {over})"


@torch.no_grad()
def score_split(
    model: CategoricalModel,
    split: Split,
    *,
    split_name: str = "test",
    num_examples: int | None = None,
    times: Times = "stratified",
    repeats: int = 1,
    batch_size: int = 32,
    seed: int = 0,
    progress: Progress = silent,
) -> Score:
    """Score the first `num_examples` of a split (all by default) in eval mode, reproducibly for a seed.

    For diffusion the bound is a sum over T times. `times="all"` computes every term, so that only x_t is Monte Carlo;
    `stratified` computes `repeats` of them per example, spread evenly over time and over the examples.
    """
    if num_examples is not None and num_examples < 1:
        raise ValueError(f"num_examples must be at least 1, got {num_examples}")
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, got {repeats}")
    if len(split) == 0:
        raise ValueError(f"the {split_name} split holds no whole example")
    if num_examples is not None and num_examples > len(split):
        raise ValueError(f"asked for {num_examples} examples, but the {split_name} split has {len(split)}")
    num = num_examples or len(split)
    device = next(model.parameters()).device
    was_training, began = model.training, time.monotonic()
    model.eval()
    scorer = Scorer(model, split, num, batch_size, device)
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            torch.manual_seed(seed)
            if isinstance(model, MultinomialDiffusion) and times == "all":
                nats, method = scorer.all_times(model, repeats, progress), f"all {model.num_steps} times"
                rank = None
            elif isinstance(model, MultinomialDiffusion):
                nats, rank = scorer.stratified_times(model, repeats, progress)
                method = f"stratified times, {repeats} of {model.num_steps} per example"
            else:
                nats, method, rank = scorer.plain(repeats, progress), f"{repeats} draws per example", None
    finally:
        model.train(was_training)
    bits = nats / (math.log(2) * split[0].numel())
    return Score(
        bits_per_dim=float(bits.mean()),
        standard_error=standard_error(bits, rank),
        kind="exact" if model.is_exact else "elbo",
        split=split_name,
        num_examples=num,
        seconds=time.monotonic() - began,
        method=method,
        per_example=tuple(bits.tolist()),
    )


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

    def stratified_times(self, model: MultinomialDiffusion, repeats: int, progress: Progress) -> tuple[Tensor, Tensor]:
        """T times the mean of `repeats` terms per example, plus the prior term; and each example's rank in time."""
        generator = torch.Generator().manual_seed(torch.initial_seed())
        t, rank = spread_times(model.num_steps, self.num, repeats, generator)
        nats = torch.zeros(self.num, dtype=torch.float64)
        with progress("Scoring", self.num * repeats) as advance:
            for start in range(0, self.num, self.batch_size):
                x, rows = self.batch(start)
                model.check_classes(x)
                nats[rows] = model.prior_term(x)
                for repeat in range(repeats):
                    nats[rows] += model.loss_at(x, t[rows, repeat]).double().cpu() * (model.num_steps / repeats)
                    advance(len(x))
        return nats, rank

    def all_times(self, model: MultinomialDiffusion, repeats: int, progress: Progress) -> Tensor:
        """Every one of the T terms of every example, plus the prior term."""
        nats = torch.zeros(self.num, dtype=torch.float64)
        every = torch.arange(1, model.num_steps + 1).repeat(repeats)
        with progress("Scoring", self.num * len(every)) as advance:
            for index in range(self.num):
                x = self.split.examples(np.array([index])).to(self.device)
                model.check_classes(x)
                nats[index] = model.prior_term(x) + self.sum_of_terms(model, x, every, advance) / repeats
        return nats

    def sum_of_terms(self, model: MultinomialDiffusion, x: Tensor, t: Tensor, advance: Advance) -> float:
        total = 0.0
        for part in t.split(self.batch_size):
            total += float(model.loss_at(x.expand(len(part), *x.shape[1:]), part).double().sum())
            advance(len(part))
        return total
