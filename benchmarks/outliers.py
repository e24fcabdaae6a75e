"""How well unusual texts are told from usual ones: python benchmarks/outliers.py text8.prefix.xz

Windows of the test split are ranked together with windows of five other kinds. Figures are the area under the ROC curve
and the average precision, with errors by resampling windows. Scores: plain bits per character, bits less those of a
reference (xz, counts of pairs, and a model of mutated text where one is given), the distance from typical bits, and xz.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from arguments import given

from unordinal.api import Run, load
from unordinal.cli.parsing import POSITIONAL
from unordinal.data import load_data
from unordinal.data.vocabularies import Vocabulary
from unordinal.tasks.surprise import order_1_bits, typical_bits, xz_bits

TEXT8 = Vocabulary.text8()


@dataclass(frozen=True)
class Args:
    data: Annotated[str, POSITIONAL]
    """The text that the model was trained on, with the same split."""
    split: str = "5977825,300000,300000"
    """TRAIN,VAL,TEST."""
    lengths: tuple[int, ...] = (64, 256)
    """Characters of a window."""
    num: int = 300
    """Windows of each kind."""
    run: str = "pretrained:text8-arm"
    """An autoregressive run."""
    background: str | None = None
    """A run trained on mutated text."""
    out: Path | None = None
    """Write the figures to this JSON file."""


def shuffled_letters(text: str, random: np.random.Generator) -> str:
    return " ".join("".join(random.permutation(list(word))) for word in text.split(" "))


def shuffled_words(text: str, random: np.random.Generator) -> str:
    return " ".join(random.permutation(text.split(" ")))


def substituted(text: str, random: np.random.Generator) -> str:
    x = TEXT8.encode(text).numpy()
    other = (x + random.integers(1, 27, len(x))) % 27
    return TEXT8.decode(np.where(random.random(len(x)) < 0.05, other, x))


def repeated(text: str, random: np.random.Generator) -> str:
    """One short phrase of the text, again and again."""
    words = text.split(" ")[1:-1] or [text]
    start = int(random.integers(max(1, len(words) - 1)))
    phrase = " ".join(words[start : start + 2]) + " "
    return (phrase * (len(text) // len(phrase) + 1))[: len(text)]


KINDS: dict[str, Callable[[str, np.random.Generator], str]] = {
    "letters shuffled within words": shuffled_letters,
    "words shuffled": shuffled_words,
    "5 % substitutions": substituted,
    "one phrase repeated": repeated,
}


def docstrings(num: int, length: int) -> list[str]:
    data = load_data("docs", alphabet="text8", length=length)
    rows = data.train.examples(np.linspace(0, len(data.train) - 1, num).round().astype(np.int64))
    return [TEXT8.decode(row) for row in rows]


def scores_of(run: Run, texts: list[str], background: Run | None) -> dict[str, np.ndarray]:
    """Return every score of every text, the higher the more unusual."""
    x = [TEXT8.encode(text) for text in texts]
    plain = np.array([b.per_symbol for b in run.bits(x)])
    size = len(x[0])
    xz = np.array([xz_bits(row) for row in x]) / size
    pairs = np.array(order_1_bits(x, 27)) / size
    usual = float(typical_bits(run.model)[:size].sum()) / size
    found = {"plain": plain, "against xz": plain - xz, "against counts": plain - pairs, "xz": xz}
    found["typical"] = np.abs(plain - usual)
    if background is not None:
        found["against mutated"] = plain - np.array([b.per_symbol for b in background.bits(x)])
    return found


def area(usual: np.ndarray, unusual: np.ndarray) -> float:
    """Return the probability that an unusual example has the higher score."""
    return float((unusual[:, None] > usual).mean() + 0.5 * (unusual[:, None] == usual).mean())


def precision(usual: np.ndarray, unusual: np.ndarray) -> float:
    """Return the average precision with which the unusual ones are found."""
    order = np.argsort(-np.concatenate([usual, unusual]), kind="stable")
    hits = np.concatenate([np.zeros(len(usual)), np.ones(len(unusual))])[order]
    return float((hits * hits.cumsum() / np.arange(1, len(hits) + 1)).sum() / hits.sum())


def with_error(
    figure: Callable[[np.ndarray, np.ndarray], float], usual: np.ndarray, unusual: np.ndarray
) -> tuple[float, float]:
    random = np.random.default_rng(0)
    again = [figure(random.choice(usual, len(usual)), random.choice(unusual, len(unusual))) for _ in range(100)]
    return figure(usual, unusual), float(np.std(again))


def main(args: Args) -> None:
    run = load(args.run)
    background = load(args.background) if args.background else None
    rows = []
    for length in args.lengths:
        data = load_data(args.data, alphabet="text8", split=args.split, length=length)
        picked = np.linspace(0, len(data.test) - 1, 2 * args.num).round().astype(np.int64)
        texts = [TEXT8.decode(row) for row in data.test.examples(picked)]
        usual, base = texts[::2], texts[1::2]
        random = np.random.default_rng(0)
        others = {name: [make(text, random) for text in base] for name, make in KINDS.items()}
        others["Python docstrings"] = docstrings(args.num, length)
        every = scores_of(run, [*usual, *(text for part in others.values() for text in part)], background)
        print(f"\nwindows of {length}: area under the ROC curve / average precision")
        for index, kind in enumerate(others, start=1):
            part = slice(index * args.num, (index + 1) * args.num)
            line = []
            for name, values in every.items():
                auc, ap = (with_error(f, values[: args.num], values[part]) for f in (area, precision))
                rows.append({"length": length, "kind": kind, "score": name, "auc": auc, "ap": ap})
                line.append(f"{name} {auc[0]:.3f} ± {auc[1]:.3f} / {ap[0]:.3f}")
            print(f"{kind:<30}" + "; ".join(line), flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(given(Args, __doc__))
