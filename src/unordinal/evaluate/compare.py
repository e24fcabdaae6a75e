"""Two models on the same examples: the difference of their bits, with the error of that difference."""

from dataclasses import dataclass
from typing import Any

from unordinal.data.splits import Split
from unordinal.evaluate.likelihood import kind_of, score_values
from unordinal.model import CategoricalModel
from unordinal.numerics import standard_error
from unordinal.progress import Progress, silent


@dataclass(frozen=True)
class Comparison:
    """Bits of two models, and how much fewer the second one needs: a paired difference."""

    first: float
    second: float
    difference: float  # second - first, negative where the second is better
    standard_error: float | None  # of the difference, over examples and draws
    kinds: tuple[str, str]  # exact, elbo or iwbo-K, of each
    num_examples: int
    split: str
    unit: str

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def verdict(self) -> str:
        """Which one is better, if that can be told."""
        if self.standard_error is None or abs(self.difference) <= 2 * self.standard_error:
            return "they cannot be told apart"
        return "the second is better" if self.difference < 0 else "the first is better"


def compare_models(
    first: CategoricalModel,
    second: CategoricalModel,
    split: Split,
    *,
    split_name: str = "test",
    repeats: int = 4,
    num_examples: int | None = None,
    seed: int = 0,
    unit: str = "bits per dimension",
    progress: Progress = silent,
) -> Comparison:
    """Score both models on the same examples with the same seed; a bound is drawn `repeats` times per example."""
    values = [
        score_values(
            model,
            split,
            split_name=split_name,
            repeats=None if model.is_exact else repeats,
            num_examples=num_examples,
            seed=seed,
            progress=progress,
        )
        for model in (first, second)
    ]
    bits = [part.bits for part in values]
    # where both spread their times alike, what the times explain is the same in both and drops out
    ranks = [part.rank for part in values]
    rank = ranks[0] if ranks[0] is not None and ranks[1] is not None else None
    return Comparison(
        first=float(bits[0].mean()),
        second=float(bits[1].mean()),
        difference=float((bits[1] - bits[0]).mean()),
        standard_error=standard_error(bits[1] - bits[0], rank),
        kinds=(kind_of(first, "elbo", 1), kind_of(second, "elbo", 1)),
        num_examples=len(bits[0]),
        split=split_name,
        unit=unit,
    )
