"""Compare two models on the same examples: the paired difference of their scores and its standard error."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from unordinal.data.splits import Split
from unordinal.evaluate.likelihood import Evaluate, kind_of, score_values
from unordinal.model import CategoricalModel
from unordinal.names import counted
from unordinal.numerics import standard_error
from unordinal.settings import Flag, Range, Request, Seed


@dataclass(frozen=True)
class Compare(Request):
    """Compare two runs on the same examples: the difference of their bits, with its standard error."""

    data: Annotated[Any, Flag(metavar="DATA")] = None
    """Other data than the first run's own."""
    split: Literal["train", "val", "test"] | None = None
    """Part of the data to score; default test, or all of other data that have no split of their own."""
    repeats: Annotated[int, Range(1)] = 4
    """Draws of a bound per example; exact likelihoods need none."""
    num_examples: Annotated[int | None, Range(1)] = None
    """Score only the first N examples; default the whole split."""
    seed: Seed = 0
    """Seed of the draws, the same for both."""


@dataclass(frozen=True)
class Comparison:
    """The scores of two models in bits per dimension, and their paired difference."""

    first: float
    second: float
    difference: float  # second - first, negative if the second is better
    standard_error: float | None  # of the difference; None if there is only one example
    kinds: tuple[str, str]  # the kind of each score: exact or elbo
    num_examples: int
    split: str
    unit: str

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        both = f"first {self.first:.4f} ({self.kinds[0]}), second {self.second:.4f} ({self.kinds[1]}) {self.unit}"
        over = f"{counted(self.num_examples, 'example')} of {self.split}"
        return f"{both}; second - first {self.difference:+.4f}{error} over {over}; {self.verdict}"

    def __repr__(self) -> str:
        return str(self)

    @property
    def verdict(self) -> str:
        """Which model is better, if the difference is more than two standard errors."""
        if self.standard_error is None or abs(self.difference) <= 2 * self.standard_error:
            return "they cannot be told apart"
        verdict = f"the {'second' if self.difference < 0 else 'first'} is better"
        if "exact" in self.kinds and self.kinds[0] != self.kinds[1]:
            verdict += " (of an exact likelihood and a bound, which may be loose)"
        return verdict


def compare_models(
    first: CategoricalModel,
    second: CategoricalModel,
    split: Split,
    asked: Compare | None = None,
    *,
    split_name: str = "test",
    unit: str = "bits per dimension",
) -> Comparison:
    """Score two models on the same examples with the same seed.

    Args:
        first: a model.
        second: another model of the same data.
        split: the examples to score.
        asked: the number of draws and of examples, and the seed.
        split_name: the name of the split, for the result.
        unit: the unit of the scores, for the result.

    Returns:
        Both scores and their difference.
    """
    asked, values = asked or Compare(), []
    for model in (first, second):
        repeats = None if model.is_exact else asked.repeats
        each = Evaluate(repeats=repeats, num_examples=asked.num_examples, seed=asked.seed, progress=asked.progress)
        values.append(score_values(model, split, each, split_name))
    bits = [part.bits for part in values]
    # if both models stratify their times in the same way, the part that the times explain cancels in the difference
    ranks = [part.rank for part in values]
    rank = ranks[0] if ranks[0] is not None and ranks[1] is not None else None
    paired = bits[1] - bits[0]
    return Comparison(
        first=float(bits[0].mean()),
        second=float(bits[1].mean()),
        difference=float(paired.mean()),
        standard_error=standard_error(paired - paired.mean() * values[0].sizes, rank),
        kinds=(kind_of(first, Evaluate(), split), kind_of(second, Evaluate(), split)),
        num_examples=len(bits[0]),
        split=split_name,
        unit=unit,
    )
