"""Estimators of the log-likelihood of a split: exact, ELBO with several treatments of time, importance-weighted."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.ordered import Ordered, Ranking
from unordinal.diffusion.times import spread_positions
from unordinal.model import CategoricalModel, evaluating, given_labels
from unordinal.models.bound import LARGEST_SHARE, LEAST_EFFECTIVE, WeightSums, bound, weight_sums
from unordinal.names import check_known, counted
from unordinal.parallel.group import ALONE, Group
from unordinal.parallel.randomness import generator_of
from unordinal.progress import Advance, Progress

ROUND, LEAST_ROUNDS, MOST_DRAWS = 4, 4, 256  # draws of an example per round; fewest rounds; most draws in all
# Examples are ranked reliably if the error of each is below this fraction of the standard deviation between them.
SHARE_OF_SPREAD = 0.25
CHECKED = 8  # examples whose paths are followed with another number of threads
SYMBOLS_PER_CALL = 8192  # most symbols of importance samples in one call of the model, which bounds the memory


def ranking_of(name: str) -> Ranking:
    """Return a ranking by its name."""
    check_known("ranking", name, get_args(Ranking))
    return cast(Ranking, name)


def order_of(name: str, size: int, seed: int) -> Tensor:
    """Return an order of positions by its name: left-to-right, right-to-left, or random for a seed.

    >>> order_of("right-to-left", 3, 0).tolist()
    [2, 1, 0]
    """
    check_known("order", name, ("left-to-right", "right-to-left", "random"))
    if name == "random":
        return torch.randperm(size, generator=generator_of(seed))
    return torch.arange(size) if name == "left-to-right" else torch.arange(size - 1, -1, -1)


@dataclass(frozen=True)
class Interval:
    """Bounds on the log-probability of examples, and how even the importance weights were; each (num,) float64.

    Args:
        lower: the importance-weighted bound, in nats.
        upper: a bound that is above in the mean, in nats.
        effective: the effective number of draws.
        share: the share of the largest weight.
    """

    lower: Tensor
    upper: Tensor
    effective: Tensor
    share: Tensor

    @property
    def is_even(self) -> Tensor:
        """Whether the weights of each example are even enough to trust the upper bound, (num,)."""
        return (self.effective >= LEAST_EFFECTIVE) & (self.share <= LARGEST_SHARE)


@dataclass(frozen=True)
class Scorer:
    """Scores the first `num` examples of a split; each method returns nats per example, (num,) float64.

    The processes of a group share the batches. The random numbers of a batch depend on the seed and on its place among
    the batches, so that any number of processes finds the same.
    """

    model: CategoricalModel
    split: Split
    num: int
    batch_size: int
    device: torch.device
    seed: int = 0
    group: Group = ALONE

    def batches(
        self, size: int | None = None, turn: int = 0
    ) -> Iterator[tuple[Tensor, Tensor | None, Tensor, torch.Generator]]:
        """Yield each batch of this process: examples, labels, their indices, and a generator for them.

        Examples that end early are scored in the order of their lengths, so that short ones do not pay for long ones.

        Args:
            size: the number of examples in a batch; by default `batch_size`.
            turn: the number of earlier passes over the examples; each pass has random numbers of its own.
        """
        size = size or self.batch_size
        for index in self.group.turns(-(-self.num // size)):
            indices = self.order[index * size : (index + 1) * size]
            x, cond = self.split.examples(indices).to(self.device), self.split.given(indices)
            rows, generator = torch.from_numpy(indices), generator_of(self.seed, turn, index, self.device)
            yield x, cond if self.model.labels else None, rows, generator

    @cached_property
    def order(self) -> np.ndarray:
        """The indices of the examples in the order in which they are scored, (num,)."""
        if not self.model.ends:
            return np.arange(self.num)
        lengths = (np.asarray(self.split.symbols[: self.num]) < self.model.num_classes).sum(axis=1)
        return np.argsort(lengths, kind="stable")

    def plain(self, draws: int, advance: Advance, positions: Tensor | None = None, turn: int = 0) -> Tensor:
        """Return the negative bound of each example, averaged over draws, at `positions` (num, draws) if given."""
        nats = torch.zeros(self.num, dtype=torch.float64)
        for x, cond, rows, generator in self.batches(turn=turn):
            at = None if positions is None else positions[rows].T
            given: Any = {"draws": draws, "positions": at, "generator": generator, "advance": advance}
            nats[rows] = -bound(self.model, self.model.trimmed(x), cond=cond, **given).mean(dim=0)
        return self.group.summed(nats)

    def exact(self, progress: Progress) -> Tensor:
        """Return the negative log-probability of each example under an exact model."""
        with self.group.progress(progress, "Scoring", self.num) as advance:
            return self.plain(1, advance)

    def averaged(self, draws: int, progress: Progress) -> tuple[Tensor, Tensor | None]:
        """Return the negative bound averaged over draws, and for diffusions the rank of each example in time."""
        positions = rank = None
        if self.model.times is not None:
            positions, rank = spread_positions(self.num, draws, generator_of(self.seed, 0, -1 % (1 << 32)))
        with self.group.progress(progress, "Scoring", self.num * draws) as advance:
            return self.plain(draws, advance, positions), rank

    def until_reliable(self, repeats: int | None, progress: Progress) -> tuple[Tensor, Tensor, int]:
        """Return the negative bound and its standard error for each example, two (num,), and the number of draws.

        Draws are made in rounds; in each round the times of an example are spread evenly. Without `repeats` the rounds
        end when the median standard error is a quarter of the standard deviation between examples, so that their
        ranking is reliable; with it, they end after that many draws. There are at least four rounds, since the error is
        estimated from the differences between them.
        """
        rounds: list[Tensor] = []
        most = MOST_DRAWS if repeats is None else max(LEAST_ROUNDS * ROUND, repeats)
        with self.group.progress(progress, "Scoring", self.num * most) as advance:
            while len(rounds) * ROUND < most:
                rounds.append(self.plain(ROUND, advance, turn=len(rounds)))
                if len(rounds) < LEAST_ROUNDS:
                    continue
                means = torch.stack(rounds)  # (rounds, num)
                error = means.std(dim=0) / math.sqrt(len(rounds))
                is_reliable = float(error.median()) <= SHARE_OF_SPREAD * float(means.mean(dim=0).std(correction=0))
                if repeats is None and is_reliable:
                    break
        return means.mean(dim=0), error, len(rounds) * ROUND

    def in_order(self, progress: Progress) -> Tensor:
        """Return the negative exact log-probability of each example given a memory of those before it in the text.

        Each batch needs what the one before it remembers, so every process scores all of them.
        """
        continued = None if self.model.stepper is None else self.model.stepper.in_order
        if continued is None or self.split.length is None:
            raise ValueError("`in_order` is only for a text and a model with a memory (arm-xl); leave it out")
        nats, past = torch.zeros(self.num, dtype=torch.float64), None
        with progress("Scoring", self.num) as advance:
            for x, _, rows, _ in replace(self, group=ALONE).batches():
                log_p, past = continued(x, past)
                nats[rows] = -log_p.double().cpu()
                advance(len(x))
        return nats

    @torch.no_grad()
    def of_order(self, order: Tensor | Ordered | None, progress: Progress) -> Tensor:
        """Return the negative exact log-probability of each example when positions are drawn in an order.

        Args:
            order: the order (L,) of all examples, or a sampler that chooses the order itself; None for the mean
                probability over all orders within a block.
            progress: receives the progress.
        """
        if order is None:
            if self.model.random_order is None:
                raise ValueError("`order` all-orders is for models of blocks, with `block` of at most 4 positions")
            log_prob, given = self.model.random_order, tuple[Any, ...]()
        else:
            found = self.model.sampler_scores if isinstance(order, Ordered) else self.model.orders
            if found is None:
                raise ValueError("`order` is for diffusions with a mask and a network that does not read the time")
            log_prob, given = found, (order,)
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num) as advance, evaluating(self.model):
            for x, cond, rows, _ in self.batches():
                nats[rows] = -log_prob(x, *given, **given_labels(cond)).double().cpu()
                advance(len(x))
        return self.group.summed(nats)

    @torch.no_grad()
    def stability(self, sampler: Ordered) -> str:
        """Return how many of a few examples have another likelihood with another number of threads.

        What is shown next depends on comparing numbers that are rounded, and may change with the order of additions.
        """
        assert self.model.sampler_scores is not None
        given = next(self.batches(), None)
        if given is None or self.device.type != "cpu":
            return "what is shown next follows from what is shown"
        x, cond = given[0][:CHECKED], None if given[1] is None else given[1][:CHECKED]
        threads, found = torch.get_num_threads(), []
        try:
            for num in (1, max(2, threads)):
                torch.set_num_threads(num)
                found.append(self.model.sampler_scores(x, sampler, **given_labels(cond)))
        finally:
            torch.set_num_threads(threads)
        changed = int(((found[0] - found[1]).abs() > 1e-3 * found[0].abs().clamp(min=1)).sum())
        return f"the path of {changed} of {counted(len(x), 'example')} changes with the number of threads"

    def importance_weighted(self, k: int, progress: Progress) -> "Interval":
        """Bound the log-probability of each example by `k` importance weights, in bounded memory."""
        copies = max(self.batch_size, SYMBOLS_PER_CALL // self.split[0].numel())
        found = torch.zeros(4, self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num * k) as advance:
            for x, cond, rows, generator in self.batches(max(1, copies // k)):
                given: Any = {"rows": copies, "generator": generator, "advance": advance}
                sums: WeightSums = weight_sums(self.model, x, k, cond=cond, **given)
                found[:, rows] = torch.stack([sums.lower, sums.upper, sums.effective, sums.share])
        return Interval(*self.group.summed(found))

    def all_times(self, repeats: int, progress: Progress) -> Tensor:
        """Return the negative bound of each example, averaged over all times."""
        num_times = None if self.model.times is None else self.model.times.num
        if num_times is None:
            raise ValueError(
                "this model has continuous time, so not all times can be computed; set `times` to stratified"
            )
        every = (torch.arange(num_times, dtype=torch.float64) + 0.5).repeat(repeats) / num_times
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num * len(every)) as advance:
            for x, cond, rows, generator in self.batches(1):
                for part in every.split(self.batch_size):
                    copies = x.expand(len(part), *x.shape[1:])
                    labels = None if cond is None else cond.expand(len(part), -1)
                    found = bound(self.model, copies, cond=labels, positions=part.unsqueeze(0), generator=generator)
                    nats[rows] -= float(found.sum()) / len(every)
                    advance(len(part))
        return self.group.summed(nats)
