"""How well whole words are filled in: python benchmarks/filling.py text8.prefix.xz

One word of every test window is blanked, letter by letter, and the place of the right word among ten proposals is
counted. The baseline takes the words of the same length that most often follow the word before and precede the word
after in the training text.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
from arguments import given

from unordinal.api import load
from unordinal.cli.parsing import POSITIONAL
from unordinal.data import load_data
from unordinal.data.vocabularies import Vocabulary

LEAST_LETTERS = 4  # of a word that is blanked
PROPOSALS = 10
NEW_PAIR = 0.1  # how often a pair of words counts that the training text lacks


@dataclass(frozen=True)
class Args:
    data: Annotated[str, POSITIONAL]
    """The text that the models were trained on, with the same split."""
    split: str = "5977825,300000,300000"
    """TRAIN,VAL,TEST."""
    num: int = 100
    """Windows."""
    size: int = 128
    """Characters of a window."""
    runs: tuple[str, ...] = ("pretrained:english-arm", "pretrained:english-absorbing")
    """The runs to compare."""
    out: Path | None = None
    """Write the figures to this JSON file."""


@dataclass(frozen=True)
class Case:
    """A window as the words before, the word that is blanked, and the words after."""

    before: list[str]
    word: str
    after: list[str]

    @property
    def text(self) -> str:
        return " ".join([*self.before, "_" * len(self.word), *self.after])


def cases(text: str, num: int, size: int) -> list[Case]:
    """Return windows of a text with a random word in each."""
    rng, found = np.random.default_rng(0), []
    for start in np.linspace(0, len(text) - size, num).astype(int):
        words = text[start : start + size].split(" ")[1:-1]  # whole words only
        able = [index for index, word in enumerate(words[1:-1], start=1) if len(word) >= LEAST_LETTERS]
        if able:
            index = int(rng.choice(able))
            found.append(Case(words[:index], words[index], words[index + 1 :]))
    return found


class Pairs:
    """Words of the same length, ranked by how often they stand between the words before and after."""

    def __init__(self, words: list[str]):
        self.single, self.pairs = Counter(words), Counter(pairwise(words))

    def proposals(self, case: Case) -> list[str]:
        def score(word: str) -> float:
            left, right = self.pairs[case.before[-1], word], self.pairs[word, case.after[0]]
            return (left + NEW_PAIR) * (right + NEW_PAIR) / self.single[word]

        fits = [word for word in self.single if len(word) == len(case.word)]
        return sorted(fits, key=score, reverse=True)[:PROPOSALS]


def main(args: Args) -> None:
    data, vocabulary = load_data(args.data, alphabet="text8", split=args.split, length=256), Vocabulary.text8()
    some = cases(vocabulary.decode(data.test.symbols), args.num, args.size)
    pairs = Pairs(vocabulary.decode(data.train.symbols).split())
    contestants = {"pairs of words": pairs.proposals}
    for name in args.runs:
        run = load(name)
        contestants[name] = lambda case, run=run: [p.filling for p in run.fill(case.text, num=PROPOSALS).proposals]  # type: ignore[misc]
    rows = []
    for name, propose in contestants.items():
        began, ranks = time.monotonic(), []
        for case in some:
            found = propose(case)
            ranks.append(found.index(case.word) + 1 if case.word in found else 0)
        row: dict[str, object] = {"contestant": name, "words": len(some)}
        row["seconds"] = (time.monotonic() - began) / len(some)
        for num in (1, 3, 10):
            share = float(np.mean([0 < rank <= num for rank in ranks]))
            row[f"among {num}"] = (share, (share * (1 - share) / len(ranks)) ** 0.5)
            print(f"{name:<32} among the first {num:>2}: {share:.1%} ± {row[f'among {num}'][1]:.1%}", flush=True)  # type: ignore[index]
        rows.append(row)
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(given(Args, __doc__))
