"""The score of a model on a split, with all that is needed to cite it."""

import math
from dataclasses import dataclass
from typing import Any

from unordinal.models.bound import LARGEST_SHARE, LEAST_EFFECTIVE
from unordinal.names import counted


@dataclass(frozen=True)
class LeastBits:
    """An upper bound on the likelihood of a split, as bits per dimension that it has at least.

    Args:
        bits_per_dim: the bits; None if the importance weights were too uneven for some example.
        standard_error: the standard error of `bits_per_dim`; None for a single example.
        effective: the effective number of draws of the example where it is smallest.
        share: the share of the largest importance weight of an example.
        num_uneven: for how many examples the weights were too uneven.

    >>> print(LeastBits(1.7, 0.02, 412.0, 0.012, 0))
    1.7000 ± 0.0200 (effective number of draws at least 412, largest weight 1.2 %; passing this check is no proof)
    """

    bits_per_dim: float | None
    standard_error: float | None
    effective: float
    share: float
    num_uneven: int

    def __str__(self) -> str:
        seen = f"effective number of draws at least {self.effective:.0f}, largest weight {100 * self.share:.2g} %"
        if self.bits_per_dim is None:
            needed = f"needed {LEAST_EFFECTIVE:g} and at most {100 * LARGEST_SHARE:g} %"
            return f"none, the draws of {counted(self.num_uneven, 'example')} are too uneven: {seen}; {needed}"
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        return f"{self.bits_per_dim:.4f}{error} ({seen}; passing this check is no proof)"


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
        dimensions: the number of positions of an example; the mean, if examples end early.
        unit: the unit of `bits_per_dim`, such as "bits per character".
        whole_unit: the unit of the bits of a whole example, where these are of interest: "bits per row", say.
        tokens: the mean number of tokens of an example, for texts of tokens; the unit then is bits per character.
        value_bits: for tables with bins, minus the log-density of the values themselves in bits per row: uniform within
            a bin, per unit for floats and per value for whole numbers and dates. It can be compared only with densities
            of the same units that have the same values as atoms.
        least: with `bound` interval, the bits that the likelihood has at least, from an upper bound.

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
    dimensions: float = 1
    unit: str = "bits per dimension"
    whole_unit: str = ""
    value_bits: float | None = None
    tokens: float | None = None
    least: LeastBits | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the score without the values of single examples, as plain values that can be written as JSON."""
        left_out = ("per_example", "per_example_error", "dimensions", "tokens", "whole_unit")
        values = {name: value for name, value in vars(self).items() if name not in left_out}
        values["least"] = None if self.least is None else vars(self.least)
        if self.tokens is not None:
            values["bits_per_token"] = self.bits_per_token
        return {**values, "bits_per_example": self.bits_per_example, "nats_per_example": self.nats_per_example}

    @property
    def bits_per_example(self) -> float:
        """The score in bits per example, or per row of a table."""
        return self.bits_per_dim * self.dimensions

    @property
    def bits_per_token(self) -> float | None:
        """The score in bits per token, for texts of tokens."""
        return None if self.tokens is None else self.bits_per_example / self.tokens

    @property
    def nats_per_example(self) -> float:
        """The score in nats per example, summed over its positions."""
        return self.bits_per_example * math.log(2)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        error = "" if self.standard_error is None else f" ± {self.standard_error:.4f}"
        over = f"{counted(self.num_examples, 'example')} of {self.split}"
        rows = ""
        if self.whole_unit:
            row_error = "" if self.standard_error is None else f" ± {self.standard_error * self.dimensions:.3f}"
            rows = f" = {self.bits_per_example:.3f}{row_error} {self.whole_unit}"
        if self.bits_per_token is not None:
            rows = f" = {self.bits_per_token:.4f} bits per token{rows}"
        text = f"{self.bits_per_dim:.4f}{error} {self.unit}{rows} ({self.kind}, {self.method}; {over})"
        of = "" if self.tokens is None else " of these tokens"  # a text has other tokenisations too
        return (
            text if self.least is None else f"{text}\nat least, by an upper bound on the likelihood{of}: {self.least}"
        )
