"""Decide which weights are best, with enough draws to tell them apart."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unordinal.data.splits import Split
from unordinal.diffusion.times import spread_positions
from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import bound
from unordinal.numerics import standard_error
from unordinal.parallel.group import ALONE, Group
from unordinal.parallel.randomness import generator_of

SEED = 20211207
MOST_ROUNDS = 4  # of draws, before two sets of weights count as equally good
GOLDEN = (math.sqrt(5) - 1) / 2
CLEAR = 2.0  # standard errors of a difference that count as one


@dataclass
class Validation:
    """Bits per dimension of fixed examples, one list per round of draws; a round has the same noise for any weights."""

    rounds: list[list[float]] = field(default_factory=list)

    @property
    def values(self) -> Tensor:
        """The bits of each example, averaged over rounds: (N,)."""
        return torch.tensor(self.rounds, dtype=torch.float64).mean(dim=0)

    @property
    def bits(self) -> float:
        return float(self.values.mean())


class Validator:
    """Scores weights on a fixed part of a split, with fixed noise, and decides which of two are better.

    The processes of a group share the batches, and all of them find the same.
    """

    def __init__(self, split: Split, num_examples: int, batch_size: int, group: Group = ALONE, end: int | None = None):
        num = min(num_examples, len(split))
        self.split, self.batch_size, self.group = split, batch_size, group
        self.chosen = np.unique(np.linspace(0, len(split) - 1, num).round().astype(np.int64))
        sizes = torch.from_numpy(split.sizes(self.chosen, end)).double()
        self.mean_size = max(1.0, float(sizes.mean()))  # bits are counted per symbol or character of all examples
        self.sizes = sizes / self.mean_size
        self.repeats = -(-num_examples // len(self.chosen))  # few examples are drawn more often, for as many numbers
        # for diffusions: the times of every example, spread evenly, and its place in that spread
        self.position, self.rank = spread_positions(len(self.chosen), self.repeats, generator_of(SEED))

    def add_round(self, model: CategoricalModel, validation: Validation) -> Validation:
        """Score the next round of draws."""
        number, device = len(validation.rounds), device_of(model)
        repeats = 1 if model.is_exact else self.repeats
        shift = number * GOLDEN % 1 / repeats  # other times in every round, spread as evenly and ranked alike
        bits = torch.zeros(len(self.chosen), dtype=torch.float64)
        for index, is_own in self.batches():
            rows = slice(index * self.batch_size, (index + 1) * self.batch_size)
            x, cond = self.split.examples(self.chosen[rows]).to(device), self.split.given(self.chosen[rows])
            positions = (self.position[rows, :repeats].T + shift) % 1
            generator = generator_of(SEED, number, index, device)
            given: Any = {"draws": repeats, "positions": positions, "generator": generator}
            nats = -bound(model, model.trimmed(x), cond=cond, **given).mean(dim=0)
            if is_own:
                bits[rows] += nats / (math.log(2) * self.mean_size)
        return Validation([*validation.rounds, self.group.summed(bits).tolist()])

    def batches(self) -> Iterator[tuple[int, bool]]:
        """Yield the number of each batch that this process scores, and whether the score counts.

        Every process has as many, since a model whose weights are spread over processes needs all of them for each
        batch; the last batch may therefore be scored by several, of which one counts.
        """
        num = -(-len(self.chosen) // self.batch_size)
        for index in range(self.group.rank, -(-num // self.group.size) * self.group.size, self.group.size):
            yield min(index, num - 1), index < num

    def error(self, model: CategoricalModel, validation: Validation) -> float | None:
        """Return the standard error of a validation's bits, over examples and draws."""
        residuals = validation.values - validation.bits * self.sizes
        return standard_error(residuals, None if model.times is None else self.rank)

    def is_better(
        self, model: CategoricalModel, new: Validation, best: Validation, best_model: Callable[[], CategoricalModel]
    ) -> tuple[bool, Validation, Validation]:
        """Return whether new weights are at least as good as the best so far, and both validations, with more rounds.

        Both have had the same draws of the same examples, so that only their difference counts. Rounds are added until
        it is clear; what cannot be told apart counts as equal, and then the newer weights are taken.
        """
        while True:
            num = min(len(new.rounds), len(best.rounds))
            difference = Validation(new.rounds[:num]).values - Validation(best.rounds[:num]).values
            error = standard_error(difference, None if model.times is None else self.rank) or 0.0
            mean = float(difference.mean())
            is_clear = model.is_exact or abs(mean) > CLEAR * error
            if is_clear or num == MOST_ROUNDS:
                return mean <= 0 or not is_clear, new, best
            if len(new.rounds) == num:
                new = self.add_round(model, new)
            if len(best.rounds) == num:
                best = self.add_round(best_model(), best)
