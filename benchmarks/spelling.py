"""How well misspelt words are corrected: python benchmarks/spelling.py text8.prefix.xz

Words of windows of 600 characters are replaced by misspellings that people made (benchmarks/misspellings.py). Settings
are chosen with `--half tune`, on val; the figures are those of `--half test`, on test, with other words. The tables
show the share of wrong words that were mended, the share of good words that were spoilt, and the share of all words
that are right, before and after, by the least confidence of a suggestion; then how often suggestions of about the
same confidence are right.

Contestants: the search of `correct`, with its judge and without, the single pass of a diffusion, symspellpy and
pyspellchecker with their own dictionaries, and symspellpy with the words of the training text.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from arguments import given
from misspellings import misspellings

from unordinal.api import load
from unordinal.cli.parsing import POSITIONAL
from unordinal.data import load_data
from unordinal.data.vocabularies import Vocabulary

THRESHOLDS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
SIZE = 600

Change = tuple[int, str, str, float]
"""Where it begins, what was there, what is suggested, and how sure the contestant is."""
Corrector = Callable[[str], list[Change]]


@dataclass(frozen=True)
class Args:
    data: Annotated[str, POSITIONAL]
    """The text that the models were trained on, with the same split."""
    split: str = "5977825,300000,300000"
    """TRAIN,VAL,TEST."""
    half: str = "test"
    """Which misspellings: tune, in windows of val, or test, in windows of test."""
    rates: tuple[float, ...] = (0.01, 0.05)
    """Shares of the words that are misspelt."""
    num: int = 100
    """Windows."""
    contestants: tuple[str, ...] = ()
    """Who takes part; default all."""
    error_rate: float | None = None
    """Of the search; default its own."""
    beam: int = 16
    """Of the search."""
    run: str = "pretrained:text8-arm"
    """The model of the search."""
    out: Path | None = None
    """Write the figures to this JSON file."""


@dataclass(frozen=True)
class Case:
    """A window: its words, and the same words as typed."""

    words: list[str]
    typed: list[str]

    @property
    def text(self) -> str:
        return " ".join(self.typed)


def cases(text: str, half: str, rate: float, num: int, seed: int) -> list[Case]:
    """Return windows, in which a share of the words is misspelt."""
    known: dict[str, list[str]] = {}
    for wrong, right in misspellings(half):
        known.setdefault(right, []).append(wrong)
    rng, found, owed = np.random.default_rng(seed), [], 0.0
    for start in np.linspace(0, len(text) - SIZE, num).astype(int):
        words = text[start : start + SIZE].split(" ")[1:-1]  # whole words only
        words = [word for word in words if word]
        able = [index for index, word in enumerate(words) if word in known]
        owed += rate * len(words)
        chosen = rng.permutation(able)[: round(owed)]
        owed -= len(chosen)
        typed = [str(rng.choice(known[w])) if index in chosen else w for index, w in enumerate(words)]
        found.append(Case(words, typed))
    return found


def judged(case: Case, changes: list[Change]) -> tuple[list[bool], list[bool]]:
    """Return which words are right after the changes; and for each change, whether it is right."""
    starts = np.cumsum([0, *(len(word) + 1 for word in case.typed)])
    right = [a == b for a, b in zip(case.words, case.typed, strict=True)]
    fine = []
    for start, old, new, _ in changes:
        first = int(np.searchsorted(starts, start, side="right")) - 1
        last = max(first, int(np.searchsorted(starts, start + max(len(old), 1), side="left")) - 1)
        begin, end = int(starts[first]), int(starts[last + 1]) - 1
        after = case.text[begin:start] + new + case.text[start + len(old) : end]
        meant, got = case.words[first : last + 1], after.split(" ")
        is_fine = [a == b for a, b in zip(meant, got, strict=True)] if len(meant) == len(got) else [False] * len(meant)
        right[first : last + 1] = is_fine
        fine.append(all(is_fine))
    return right, fine


def figures(found: list[tuple[Case, list[Change]]], threshold: float) -> dict[str, float]:
    """Return the shares at a threshold."""
    total: Counter[str] = Counter()
    per_window = []
    for case, changes in found:
        after, _ = judged(case, [change for change in changes if change[3] >= threshold])
        before = [a == b for a, b in zip(case.words, case.typed, strict=True)]
        pairs = Counter(zip(before, after, strict=True))
        total.update({"mended": pairs[False, True], "wrong": pairs[False, True] + pairs[False, False]})
        total.update({"spoilt": pairs[True, False], "good": pairs[True, False] + pairs[True, True]})
        per_window.append(sum(after) / len(after))
    words = total["wrong"] + total["good"]
    return {
        "mended": total["mended"] / total["wrong"],
        "mended_error": (total["mended"] * (total["wrong"] - total["mended"])) ** 0.5 / total["wrong"] ** 1.5,
        "spoilt": total["spoilt"] / total["good"],
        "before": total["good"] / words,
        "after": (total["good"] - total["spoilt"] + total["mended"]) / words,
        "after_error": float(np.std(per_window, ddof=1) / len(per_window) ** 0.5),
    }


def reliability(found: list[tuple[Case, list[Change]]]) -> list[dict[str, float]]:
    """Return the mean confidence of suggestions of similar confidence, and how many of them are right."""
    pairs = []
    for case, changes in found:
        _, fine = judged(case, changes)
        pairs += [(change[3], is_fine) for change, is_fine in zip(changes, fine, strict=True)]
    rows = []
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 0.99), (0.99, 1.01)):
        some = [(p, is_fine) for p, is_fine in pairs if low <= p < high]
        if some:
            said, right = (float(np.mean(column)) for column in zip(*some, strict=True))
            rows.append({"low": low, "num": len(some), "said": said, "right": right})
    if pairs:
        said, right = (float(np.mean(column)) for column in zip(*pairs, strict=True))
        rows.append({"low": -1.0, "num": len(pairs), "said": said, "right": right})
    return rows


def by_words(propose: Callable[[str], tuple[str, float] | None]) -> Corrector:
    """Return a corrector that looks at each word by itself."""

    def corrector(text: str) -> list[Change]:
        found = []
        for word in re.finditer("[a-z]+", text):
            proposed = propose(word.group())
            if proposed is not None and proposed[0] != word.group():
                found.append((word.start(), word.group(), *proposed))
        return found

    return corrector


def symspell(words: dict[str, int] | None) -> Corrector:
    """Return symspellpy with words and their counts, or with its own dictionary."""
    from importlib.resources import files

    from symspellpy import SymSpell, Verbosity

    spell = SymSpell(max_dictionary_edit_distance=2)
    if words is None:
        spell.load_dictionary(str(files("symspellpy") / "frequency_dictionary_en_82_765.txt"), 0, 1)
    for word, count in (words or {}).items():
        spell.create_dictionary_entry(word, count)

    def propose(word: str) -> tuple[str, float] | None:
        near = spell.lookup(word, Verbosity.CLOSEST, max_edit_distance=2)
        return (near[0].term, near[0].count / sum(s.count for s in near)) if near else None

    return by_words(propose)


def pyspellchecker() -> Corrector:
    """Return pyspellchecker with its own dictionary."""
    from spellchecker import SpellChecker

    spell = SpellChecker()

    def propose(word: str) -> tuple[str, float] | None:
        best = None if word in spell else spell.correction(word)
        return None if best is None else (best, 1.0)

    return by_words(propose)


def with_run(name: str, **settings: Any) -> Corrector:
    """Return a run's `correct`."""
    run = load(name)

    def corrector(text: str) -> list[Change]:
        found = run.correct(text, threshold=0.0, **settings)
        return [(s.start, s.old, s.new, s.confidence) for s in found.suggestions]

    return corrector


def main(args: Args) -> None:
    data = load_data(args.data, alphabet="text8", split=args.split, length=256)
    vocabulary = Vocabulary.text8()
    text = vocabulary.decode(data.split("val" if args.half == "tune" else "test").symbols)
    counts = Counter(vocabulary.decode(data.train.symbols).split())
    searched = {"beam": args.beam} | ({} if args.error_rate is None else {"error_rate": args.error_rate})
    makers: dict[str, Callable[[], Corrector]] = {
        "search": lambda: with_run(args.run, method="beam", **searched),
        "search, characters only": lambda: with_run(args.run, method="beam", judge=args.run, **searched),
        "pass": lambda: with_run("pretrained:text8-uniform", method="pass", error_rate=0.002),
        "symspell": lambda: symspell(None),
        "symspell, training words": lambda: symspell({w: n for w, n in counts.items() if n > 1}),
        "pyspellchecker": pyspellchecker,
    }
    rows = []
    for name, make in makers.items():
        if name not in (args.contestants or (name,)):
            continue
        corrector = make()
        for rate in args.rates:
            some = cases(text, args.half, rate, args.num, seed=1)
            began = time.monotonic()
            found = [(case, corrector(case.text)) for case in some]
            seconds = (time.monotonic() - began) / len(some)
            curve = {threshold: figures(found, threshold) for threshold in THRESHOLDS}
            sure = reliability(found)
            rows.append({"contestant": name, "rate": rate, "seconds": seconds, "curve": curve, "reliability": sure})
            print(f"{name}, {rate:.0%} of the words misspelt, {seconds:.2f} s a window of {SIZE} characters")
            for threshold, f in curve.items() if name.startswith("search") or name == "pass" else [(0.0, curve[0.0])]:
                print(
                    f"  from {threshold:<6} mended {f['mended']:.1%} ± {f['mended_error']:.1%}"
                    f"  spoilt {f['spoilt']:.2%}  right {f['before']:.2%} -> {f['after']:.2%} ± {f['after_error']:.2%}",
                    flush=True,
                )
            for row in sure if name.startswith("search") else ():
                said = f"{row['said']:.3f} said, {row['right']:.3f} right"
                print(f"  reliability from {row['low']:<5} {row['num']:>5}: {said}")
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(given(Args, __doc__))
