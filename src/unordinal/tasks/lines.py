"""How surprising every line of a text is."""

from dataclasses import dataclass
from typing import Any

from unordinal.data.spec import Vocabulary
from unordinal.model import CategoricalModel
from unordinal.progress import Progress, silent
from unordinal.tasks.reading import read
from unordinal.tasks.surprise import Bits, bits_of


@dataclass(frozen=True)
class Line:
    """A line of a text and its bits.

    Args:
        number: the number of the line, from 1.
        text: the line as it was given.
        symbols: the line as the model sees it.
        bits: its bits.
    """

    number: int
    text: str
    symbols: str
    bits: Bits

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values for JSON."""
        values: dict[str, Any] = {"line": self.number, "text": self.text, "bits": self.bits.bits}
        return {**values, "error": self.bits.error, "bits_per_symbol": self.bits.per_symbol}


def score_lines(
    model: CategoricalModel, text: str, vocabulary: Vocabulary, *, seed: int = 0, progress: Progress = silent
) -> list[Line]:
    """Return the bits of every line of a text that is not empty, in the order of the text.

    Args:
        model: a model of sequences; an autoregressive one gives exact bits.
        text: the text, in any characters; see `read`.
        vocabulary: the model's alphabet.
        seed: the seed of a bound's draws.
        progress: is told how much is done.
    """
    given = [(number, line) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not given:
        raise ValueError("the text is empty; there is nothing to score")
    examples = [read(line, vocabulary).x for _, line in given]
    found = bits_of(model, examples, seed=seed, progress=progress)
    return [
        Line(number, line, vocabulary.decode(x), bits)
        for (number, line), x, bits in zip(given, examples, found, strict=True)
    ]
