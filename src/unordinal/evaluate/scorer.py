"""Estimators of the log-likelihood of examples: exact, ELBO with several treatments of time, importance-weighted."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.times import spread_positions
from unordinal.model import CategoricalModel
from unordinal.names import check_known
from unordinal.parallel.group import ALONE, Group
from unordinal.parallel.randomness import seed_step
from unordinal.progress import Advance, Progress

ROUND, LEAST_ROUNDS, MOST_DRAWS = 8, 4, 256  # draws of an example per round; fewest rounds; most draws in all
# Examples are ranked reliably if the error of each is below this fraction of the standard deviation between them.
SHARE_OF_SPREAD = 0.25
SYMBOLS_PER_CALL = 8192  # most symbols of importance samples in one call of the model, which bounds the memory


def iwbo(model: CategoricalModel, x: Tensor, k: int, rows: int, advance: Advance) -> tuple[Tensor, Tensor]:
    """Return the log of the mean of k importance weights of each example, and its variance by the delta method.

    Both are (B,) float64. At most `rows` copies of examples are passed to the model at a time, whatever k is.
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


def order_of(name: str, size: int, seed: int) -> Tensor:
    """Return an order of positions by its name: left-to-right, right-to-left, or random for a seed.

    >>> order_of("right-to-left", 3, 0).tolist()
    [2, 1, 0]
    """
    check_known("order", name, ("left-to-right", "right-to-left", "random"))
    if name == "random":
        return torch.randperm(size, generator=torch.Generator().manual_seed(seed))
    return torch.arange(size) if name == "left-to-right" else torch.arange(size - 1, -1, -1)


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

    def batches(self, size: int | None = None, turn: int = 0) -> Iterator[tuple[Tensor, slice]]:
        """Seed torch's generators for, and yield, each batch of this process: examples and their indices as a slice.

        Args:
            size: the number of examples in a batch; by default `batch_size`.
            turn: which time this is that the examples are gone through; each has random numbers of its own.
        """
        size = size or self.batch_size
        for index in self.group.turns(-(-self.num // size)):
            rows = slice(index * size, min((index + 1) * size, self.num))
            seed_step(self.seed, turn, index)
            yield self.split.examples(np.arange(rows.start, rows.stop)).to(self.device), rows

    def plain(self, repeats: int, progress: Progress) -> Tensor:
        """Return the negative ELBO of each example, averaged over `repeats` draws."""
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num * repeats) as advance:
            for x, rows in self.batches():
                for _ in range(repeats):
                    nats[rows] -= self.model.elbo(x).double().cpu() / repeats
                    advance(len(x))
        return self.group.summed(nats)

    def until_reliable(self, repeats: int | None, progress: Progress) -> tuple[Tensor, Tensor, int]:
        """Return the negative bound and its standard error for each example, two (num,), and the number of draws.

        Draws are made in rounds; in each round the times of an example are spread evenly. Without `repeats` the rounds
        end when the median standard error is a quarter of the standard deviation between examples, so that their
        ranking is reliable; with it, they end after that many draws.
        """
        rounds: list[Tensor] = []
        most = MOST_DRAWS if repeats is None else max(2 * ROUND, repeats)
        with self.group.progress(progress, "Scoring", self.num * most) as advance:
            while len(rounds) * ROUND < most:
                rounds.append(self.one_round(len(rounds), advance))
                if len(rounds) < 2:
                    continue
                means = torch.stack(rounds)  # (rounds, num)
                error = means.std(dim=0) / math.sqrt(len(rounds))
                is_reliable = float(error.median()) <= SHARE_OF_SPREAD * float(means.mean(dim=0).std(correction=0))
                if repeats is None and len(rounds) >= LEAST_ROUNDS and is_reliable:
                    break
        return means.mean(dim=0), error, len(rounds) * ROUND

    def one_round(self, turn: int, advance: Advance) -> Tensor:
        """Return the negative bound of each example, averaged over `ROUND` draws: (num,) nats."""
        nats = torch.zeros(self.num, dtype=torch.float64)
        for x, rows in self.batches(turn=turn):
            offset = torch.rand(len(x), dtype=torch.float64)
            for draw in range(ROUND):
                if self.model.abilities.times:
                    bounds = self.model.elbo_at(x, (offset + draw) / ROUND)
                else:
                    bounds = self.model.elbo(x)
                nats[rows] -= bounds.double().cpu() / ROUND
                advance(len(x))
        return self.group.summed(nats)

    def in_order(self, progress: Progress) -> Tensor:
        """Return the negative exact log-probability of each example given a memory of those before it in the text.

        Each batch needs what the one before it remembers, so every process scores all of them.
        """
        if not self.model.abilities.in_order or self.split.length is None:
            raise ValueError("`in_order` is only for a text and a model with a memory (arm-xl); leave it out")
        nats, past = torch.zeros(self.num, dtype=torch.float64), None
        with progress("Scoring", self.num) as advance:
            for x, rows in replace(self, group=ALONE).batches():
                log_p, past = self.model.log_prob_in_order(x, past)
                nats[rows] = -log_p.double().cpu()
                advance(len(x))
        return nats

    def of_order(self, order: Tensor, progress: Progress) -> Tensor:
        """Return the negative exact log-probability of each example when positions are drawn in a given order (L,)."""
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num) as advance:
            for x, rows in self.batches():
                nats[rows] = -self.model.log_prob_of_order(x, order).double().cpu()
                advance(len(x))
        return self.group.summed(nats)

    def importance_weighted(self, k: int, progress: Progress) -> Tensor:
        """Return minus the log of the mean of `k` importance weights of each example, in bounded memory."""
        copies = max(self.batch_size, SYMBOLS_PER_CALL // self.split[0].numel())
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num * k) as advance:
            for x, rows in self.batches(max(1, copies // k)):
                nats[rows] = -iwbo(self.model, x, k, copies, advance)[0]
        return self.group.summed(nats)

    def stratified_times(self, repeats: int, progress: Progress) -> tuple[Tensor, Tensor]:
        """Return the negative bound averaged over `repeats` times per example, and the rank of each example in time."""
        position, rank = spread_positions(self.num, repeats, torch.Generator().manual_seed(self.seed))
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num * repeats) as advance:
            for x, rows in self.batches():
                for repeat in range(repeats):
                    nats[rows] -= self.model.elbo_at(x, position[rows, repeat]).double().cpu() / repeats
                    advance(len(x))
        return self.group.summed(nats), rank

    def all_times(self, repeats: int, progress: Progress) -> Tensor:
        """Return the negative bound of each example, averaged over all times."""
        num_times = self.model.abilities.num_times
        if num_times is None:
            raise ValueError(
                "this model has continuous time, so not all times can be computed; set `times` to stratified"
            )
        every = (torch.arange(num_times, dtype=torch.float64) + 0.5).repeat(repeats) / num_times
        nats = torch.zeros(self.num, dtype=torch.float64)
        with self.group.progress(progress, "Scoring", self.num * len(every)) as advance:
            for x, rows in self.batches(1):
                for part in every.split(self.batch_size):
                    bounds = self.model.elbo_at(x.expand(len(part), *x.shape[1:]), part)
                    nats[rows] -= float(bounds.double().sum()) / len(every)
                    advance(len(part))
        return self.group.summed(nats)
