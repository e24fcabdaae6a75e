"""How well substituted letters are corrected: python benchmarks/correcting.py text8.prefix.xz

Letters of the test split are replaced at random by other symbols of the alphabet; these are not the typing errors of
people. Every contestant knows the rate of errors, and its threshold is tuned on the val split. The table shows the
share of wrong characters before and after, the share of errors that were mended, the share of good characters that were
spoilt, and characters per second.

Contestants: the single pass of a diffusion (and three passes), beam search under an autoregressive model,
forward-backward decoding of an order-5 count model with four candidates for every position, and symspellpy with the
words of the training text.
"""

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from arguments import given
from contexts import probabilities
from torch import Tensor
from torch.nn.functional import one_hot

from unordinal.api import load
from unordinal.cli.parsing import POSITIONAL
from unordinal.data import load_data
from unordinal.data.splits import Data
from unordinal.data.vocabularies import Vocabulary
from unordinal.evaluate.counts import CountModel
from unordinal.tasks.channel import substitutions
from unordinal.tasks.correcting import diffusion_posterior
from unordinal.tasks.search import search

K, LENGTH, ORDER, CANDIDATES = 27, 256, 5, 4
THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)


@dataclass(frozen=True)
class Args:
    data: Annotated[str, POSITIONAL]
    """The text that the models were trained on, with the same split."""
    split: str = "5977825,300000,300000"
    """TRAIN,VAL,TEST."""
    rates: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)
    """Rates of errors."""
    num: int = 200
    """Windows of 256 characters of the test split; a quarter as many of the val split tune the thresholds."""
    contestants: tuple[str, ...] = ()
    """Who takes part; default all."""
    uniform: str = "pretrained:text8-uniform"
    """The run of a diffusion."""
    arm: str = "pretrained:text8-arm"
    """The run of an autoregressive model."""
    beam: int = 16
    """Candidates of the beam search."""
    most_spoilt: float = 0.001
    """Also show figures at the lowest threshold that spoils at most this share of the good characters of val."""
    out: Path | None = None
    """Write the figures to this JSON file."""


Posterior = Callable[[Tensor, float], Tensor]
"""Probabilities of the clean symbols (N, L, K) of observed ones (N, L) at a rate of errors."""


def corrupted(x: Tensor, rate: float, seed: int) -> Tensor:
    """Replace symbols (N, L) by others, each with this probability."""
    generator = torch.Generator().manual_seed(seed)
    other = (x + torch.randint(1, K, x.shape, generator=generator)) % K
    return torch.where(torch.rand(x.shape, generator=generator) < rate, other, x)


class CountDecoder:
    """Posterior of every symbol under an order-5 count model, over a few candidates for every position."""

    def __init__(self, train: np.ndarray):
        self.counts = CountModel(train, K, ORDER)
        triples = np.zeros((K, K, K)) + 0.1
        np.add.at(triples, (train[:-2], train[1:-1], train[2:]), 1)
        self.log_triples = np.log(triples / triples.sum(-1, keepdims=True))

    def candidates(self, row: np.ndarray) -> np.ndarray:
        """Return the observed symbol and those that fit its neighbours best, for every position: (L, C)."""
        padded = np.concatenate([[0, 0], row, [0, 0]])
        every = np.arange(K)
        found = np.zeros((len(row), CANDIDATES), np.int64)
        for i in range(len(row)):
            a, b, _, d, e = padded[i : i + 5]
            score = self.log_triples[a, b] + self.log_triples[b, every, d] + self.log_triples[every, d, e]
            score[row[i]] = np.inf
            found[i] = np.argsort(-score)[:CANDIDATES]
        return found

    def __call__(self, x: Tensor, rate: float) -> Tensor:
        return torch.stack([self.one(row.numpy().astype(np.int64), rate) for row in x])

    def one(self, row: np.ndarray, rate: float) -> Tensor:
        """Forward-backward over the last five candidates: (L,) -> (L, K)."""
        length, choice = len(row), self.candidates(row)
        picks = np.array(list(itertools.product(range(CANDIDATES), repeat=ORDER)))  # a state: the last five picks
        num = len(picks)
        padded = np.concatenate([np.zeros((ORDER, CANDIDATES), np.int64), choice])  # spaces before the beginning
        step = np.zeros((length, num, CANDIDATES))
        for i in range(length):
            contexts = np.stack([padded[i + j][picks[:, j]] for j in range(ORDER)], axis=1)
            for c in range(CANDIDATES):
                channel = 1 - rate if choice[i, c] == row[i] else rate / (K - 1)
                step[i, :, c] = channel * probabilities(self.counts, contexts, np.full(num, choice[i, c]))
        after = np.arange(num)[:, None] * CANDIDATES % num + np.arange(CANDIDATES)  # the state after a pick
        forward = np.zeros((length + 1, num))
        forward[0, 0] = 1.0
        for i in range(length):
            np.add.at(forward[i + 1], after, forward[i][:, None] * step[i])
            forward[i + 1] /= forward[i + 1].sum()
        backward, p = np.ones(num), np.zeros((length, K))
        for i in range(length - 1, -1, -1):
            joint = forward[i][:, None] * step[i] * backward[after]
            np.add.at(p[i], choice[i], joint.sum(0) / joint.sum())
            backward = (step[i] * backward[after]).sum(1)
            backward /= backward.max()
        return torch.from_numpy(p)


class WordDecoder:
    """symspellpy with the words of the training text: words it does not know become the likeliest similar one."""

    def __init__(self, text: str):
        from symspellpy import SymSpell

        self.spell = SymSpell(max_dictionary_edit_distance=2)
        self.words = {word: count for word, count in Counter(text.split()).items() if count > 1}
        for word, count in self.words.items():
            self.spell.create_dictionary_entry(word, count)
        self.vocabulary = Vocabulary.text8()

    def __call__(self, x: Tensor, rate: float) -> Tensor:
        from symspellpy import Verbosity

        p = torch.nn.functional.one_hot(x, K).double()
        for index, row in enumerate(x):
            start = 0
            for word in self.vocabulary.decode(row).split(" "):
                if len(word) > 2 and word not in self.words:
                    near = self.spell.lookup(word, Verbosity.CLOSEST, max_edit_distance=2)
                    same = [s for s in near if len(s.term) == len(word)]  # substitutions only
                    if same:
                        sure = same[0].count / sum(s.count for s in same)
                        for place, letter in enumerate(self.vocabulary.encode(same[0].term).tolist()):
                            if letter != int(row[start + place]):
                                p[index, start + place] = 0.0
                                p[index, start + place, letter] = sure
                start += len(word) + 1
        return p


def figures(p: Tensor, clean: Tensor, seen: Tensor, threshold: float) -> dict[str, float]:
    """Compare what is left of the errors with what there was."""
    best = p.max(-1)
    out = torch.where((best.indices != seen) & (best.values >= threshold), best.indices, seen)
    was_wrong, is_wrong = seen != clean, out != clean
    per_window = (is_wrong.double() - was_wrong.double()).mean(1)
    return {
        "before": float(was_wrong.double().mean()),
        "after": float(is_wrong.double().mean()),
        "removed": 1 - float(is_wrong.sum()) / float(was_wrong.sum()),
        "removed_error": float(per_window.std() / len(per_window) ** 0.5) / float(was_wrong.double().mean()),
        "mended": float((was_wrong & ~is_wrong).sum()) / float(was_wrong.sum()),
        "spoilt": float((~was_wrong & is_wrong).sum()) / float((~was_wrong).sum()),
    }


def contestants(args: Args, data: Data) -> dict[str, Callable[[], Posterior]]:
    """Return how each contestant is made."""

    def single_pass(passes: int) -> Posterior:
        model = load(args.uniform).model
        return lambda x, rate: torch.stack(
            [diffusion_posterior(model, row, error_rate=rate, passes=passes) for row in x]
        )

    def beam() -> Posterior:
        model = load(args.arm).model

        def posterior(x: Tensor, rate: float) -> Tensor:
            parts = (search(model, substitutions(K, rate), part, beam=args.beam) for part in x.split(8))
            found = [one for part in parts for one in part]
            each = [torch.softmax(f.scores, 0) @ one_hot(torch.stack(f.texts), K).double().flatten(1) for f in found]
            return torch.stack(each).view(*x.shape, K)

        return posterior

    return {
        "single pass": lambda: single_pass(1),
        "three passes": lambda: single_pass(3),
        "beam": beam,
        "order-5 counts": lambda: CountDecoder(data.train.symbols.astype(np.int64)),
        "symspell": lambda: WordDecoder(Vocabulary.text8().decode(data.train.symbols)),
    }


def main(args: Args) -> None:
    data = load_data(args.data, alphabet="text8", split=args.split, length=LENGTH)
    chosen = {name: make for name, make in contestants(args, data).items() if name in (args.contestants or (name,))}

    def windows(split: str, num: int) -> Tensor:
        part = data.split(split)
        return part.examples(np.linspace(0, len(part) - 1, num).round().astype(np.int64)).long()

    clean, tuning = windows("test", args.num), windows("val", max(4, args.num // 4))
    rows = []
    print(
        f"{'contestant':<16}{'rate':>6}{'above':>7}{'before':>9}{'after':>9}{'removed':>18}{'mended':>9}{'spoilt':>9}{'chars/s':>10}"
    )
    for name, make in chosen.items():
        posterior = make()
        for rate in args.rates:
            observed = corrupted(tuning, rate, 1)
            p = posterior(observed, rate)
            tuned = {value: figures(p, tuning, observed, value) for value in THRESHOLDS}
            best = min(THRESHOLDS, key=lambda value: tuned[value]["after"])
            careful = next((v for v in THRESHOLDS if tuned[v]["spoilt"] <= args.most_spoilt), THRESHOLDS[-1])
            seen, began = corrupted(clean, rate, 2), time.monotonic()
            p = posterior(seen, rate)
            speed = clean.numel() / (time.monotonic() - began)
            for threshold in sorted({best, careful}):
                found = figures(p, clean, seen, threshold)
                rows.append({"contestant": name, "rate": rate, "threshold": threshold, **found, "speed": speed})
                removed = f"{100 * found['removed']:.1f} ± {100 * found['removed_error']:.1f} %"
                shares = "".join(f"{100 * found[key]:>8.2f}%" for key in ("mended", "spoilt"))
                print(
                    f"{name:<16}{100 * rate:>5.0f}%{threshold:>7.2f}{100 * found['before']:>8.2f}%"
                    f"{100 * found['after']:>8.2f}%{removed:>18}{shares}{speed:>10.0f}",
                    flush=True,
                )
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(given(Args, __doc__))
