"""How surprising every line of a text, or every example of an array, is."""

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from torch import Tensor

from unordinal.checks import as_classes, check_classes
from unordinal.data.spec import DataSpec
from unordinal.model import CategoricalModel
from unordinal.settings import NOT_SERVED, Flag, Range, Request, Seed
from unordinal.tasks.reading import read
from unordinal.tasks.surprise import Bits, bits_of, order_1_bits, typical_bits, xz_bits

MOST_PAIRED = 4096  # classes whose pairs are counted


@dataclass(frozen=True)
class Measure(Request):
    """Measure how surprising every line of a text is, in bits per character."""

    text: Annotated[str | Any, Range(1, served=10_000)]
    """The text, of which every line is scored; in Python also a list of texts, or classes (N, *D)."""
    against: Annotated[str | Any | None, NOT_SERVED, Flag(metavar="REFERENCE")] = None
    """Subtract the bits of a reference: another run over the same alphabet, counts of pairs of characters in the scored
    lines (`counts`), or xz."""
    typical: Annotated[bool, NOT_SERVED] = False
    """Rank by the distance from the bits that the model expects, which are those of its own samples."""
    seed: Seed = 0
    """Seed of a bound's draws."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.against is not None and self.typical:
            raise ValueError("give `against` or `typical`, not both: each ranks lines in its own way")


@dataclass(frozen=True)
class Line:
    """A line of a text, or an example, and its bits.

    Args:
        number: the number of the line, from 1.
        text: the line as it was given; empty for an array.
        symbols: the line as the model sees it.
        bits: its bits.
        score: how unusual it is, in bits per symbol: its bits, less those of a reference if there is one.
    """

    number: int
    text: str
    symbols: str
    bits: Bits
    score: float

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values for JSON."""
        values: dict[str, Any] = {"line": self.number, "text": self.text, "bits": self.bits.bits}
        values |= {"error": self.bits.error, "bits_per_symbol": self.bits.per_symbol, "score": self.score}
        return {
            **values,
            "symbols": self.symbols,
            "num_altered": self.bits.num_altered,
            "positions": self.bits.positions,
        }


def measure(
    model: CategoricalModel, spec: DataSpec, asked: Measure, reference: CategoricalModel | None = None
) -> list[Line]:
    """Return the bits of every line that is not empty, or of every example, in the order in which they were given.

    Args:
        model: a model of sequences; an autoregressive one gives exact bits.
        spec: the description of its data.
        asked: the request.
        reference: the model that `against` names, if it names one.
    """
    given = asked.text.splitlines() if isinstance(asked.text, str) else list(asked.text)
    numbered = [(n, part) for n, part in enumerate(given, start=1) if not isinstance(part, str) or part.strip()]
    if not numbered:
        raise ValueError("the text is empty; there is nothing to score")
    if asked.typical and model.stepper is None:
        raise ValueError("`typical` needs an autoregressive model, and this one is not autoregressive")
    readings = [classes_of(model, spec, part) for _, part in numbered]
    examples = [x for x, _ in readings]
    found = bits_of(model, examples, seed=asked.seed, progress=asked.progress)
    others = reference_bits(model, examples, asked, reference)
    lines = []
    for (number, part), (x, altered), whole, other in zip(numbered, readings, found, others, strict=True):
        excess = abs(whole.bits - other) if asked.typical else whole.bits - other
        symbols = "" if spec.vocabulary is None or spec.is_map else spec.vocabulary.decode(x)
        text = part if isinstance(part, str) else ""
        bits = by_character(whole, x, spec) if text else whole
        lines.append(Line(number, text, symbols, replace(bits, num_altered=altered), excess / bits.num_symbols))
    return lines


def by_character(bits: Bits, x: Tensor, spec: DataSpec) -> Bits:
    """Return the bits of a text by character: those of a token are shared out evenly over its bytes."""
    if spec.vocabulary is None or spec.vocabulary.symbols:
        return bits
    pieces = [spec.vocabulary.pieces[k] for k in x.tolist()]
    begins = [byte & 0xC0 != 0x80 for piece in pieces for byte in piece]  # whether a character begins with this byte
    num = sum(begins) if spec.vocabulary.kind == "tokens" else bits.num_symbols
    if bits.positions is None:
        return replace(bits, num_symbols=num)
    shares = [own / len(piece) for own, piece in zip(bits.positions, pieces, strict=True) for _ in piece]
    found = [0.0] * sum(begins)
    for place, share in zip(np.cumsum(begins), shares, strict=True):
        found[place - 1] += share
    return replace(bits, num_symbols=num, positions=tuple(found))


def classes_of(model: CategoricalModel, spec: DataSpec, part: Any) -> tuple[Tensor, int]:
    """Return the classes of a text or of an array, and how many characters are seen as others."""
    if isinstance(part, str):
        reading = read(part, spec.text_vocabulary("bits", takes_tokens=True))
        if spec.ends and len(reading.x) > spec.event_shape[0]:
            most = spec.event_shape[0]
            raise ValueError(
                f"the line {part[:40]!r} has {len(reading.x)} symbols; lines of this model have at most {most}"
            )
        return reading.x, reading.num_altered
    x = as_classes(part, "text")
    check_classes(model, x.unsqueeze(0))
    return x.long(), 0


def reference_bits(
    model: CategoricalModel, examples: list[Tensor], asked: Measure, reference: CategoricalModel | None
) -> list[float]:
    """Return the bits of each example that are subtracted from its own."""
    if asked.typical:
        expected = typical_bits(model, asked.seed)
        later = float(expected[len(expected) // 2 :].mean())  # positions beyond those of a sample
        return [float(expected[:n].sum()) + later * max(0, n - len(expected)) for n in map(len, examples)]
    if reference is not None:
        return [b.bits for b in bits_of(reference, examples, seed=asked.seed, progress=asked.progress)]
    if asked.against == "xz":
        return [xz_bits(x) for x in examples]
    if asked.against == "counts":
        if model.num_classes > MOST_PAIRED:
            raise ValueError(
                f"`against` counts is for at most {MOST_PAIRED:,} classes; this model has {model.num_classes:,}"
            )
        return order_1_bits(examples, model.num_classes)
    return [0.0] * len(examples)
