"""Misspellings that people made, from the dictionary of codespell, and how often each kind of mistake occurs in them.

The dictionary is a derivative work of the English Wikipedia, under CC BY-SA 3.0; it is installed with codespell, and
none of its entries is part of this project. Entries with one suggestion in a-z are split in halves by the correct
word: "tune" for choosing settings, "test" for figures.

    python benchmarks/misspellings.py src/unordinal/tasks/typing.json   # estimate the channel again, from "tune"
"""

import hashlib
import itertools
import json
import re
import string
import sys
from collections import Counter
from importlib.resources import files
from pathlib import Path

LETTERS = string.ascii_lowercase
START = len(LETTERS)
PRIOR = 20.0  # occurrences of each context that are assumed to have the average errors
SLIPS = 0.25  # the share of errors that are slips to a neighbouring key, which lists of misspellings seldom have
ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
MOST_EDITS = 3  # of an entry that is counted


def misspellings(half: str) -> list[tuple[str, str]]:
    """Return pairs of a misspelling and the correct word, of the half "tune" or "test"."""
    text = (files("codespell_lib") / "data" / "dictionary.txt").read_text(encoding="utf-8")
    entries = (line.split("->", 1) for line in text.splitlines() if "->" in line)
    pairs = [(wrong, right.strip()) for wrong, right in entries]
    return [
        (wrong, right)
        for wrong, right in pairs
        if re.fullmatch("[a-z]+", wrong) and re.fullmatch("[a-z]+", right) and half_of(right) == half
    ]


def half_of(word: str) -> str:
    """Return the half that a correct word belongs to."""
    return ("tune", "test")[hashlib.sha256(word.encode()).digest()[0] % 2]


def key_places() -> dict[str, tuple[float, float]]:
    """Return where each key is on a keyboard."""
    return {letter: (x + 0.5 * y, y) for y, row in enumerate(ROWS) for x, letter in enumerate(row)}


def neighbours(letter: str) -> list[str]:
    """Return the letters whose keys touch the key of a letter."""
    places = key_places()
    x, y = places[letter]
    return [other for other, (u, v) in places.items() if other != letter and abs(u - x) <= 1 and abs(v - y) <= 1]


def edits(wrong: str, right: str) -> list[tuple[str, int, int]] | None:
    """Return the fewest edits that turn a word into its misspelling, as kind and two letters; None if there are many.

    Where one of two equal letters is left out or added, it is the second one.
    """
    n, m = len(right), len(wrong)
    cost: dict[tuple[int, int], tuple[int, list[tuple[str, int, int]]]] = {(0, 0): (0, [])}

    def at(word: str, place: int) -> int:
        return LETTERS.index(word[place]) if place >= 0 else START

    for i in range(n + 1):
        for j in range(m + 1):
            ways = [cost[0, 0]] if i == j == 0 else []
            if i and j:
                found, done = cost[i - 1, j - 1]
                same = right[i - 1] == wrong[j - 1]
                step = [] if same else [("substitute", at(right, i - 1), at(wrong, j - 1))]
                ways.append((found + (not same), done + step))
            if i:
                found, done = cost[i - 1, j]
                ways.append((found + 1, [*done, ("delete", at(right, i - 2), at(right, i - 1))]))
            if j:
                found, done = cost[i, j - 1]
                ways.append((found + 1, [*done, ("insert", at(right, i - 1), at(wrong, j - 1))]))
            if i > 1 and j > 1 and right[i - 2 : i] == wrong[j - 1] + wrong[j - 2] and right[i - 1] != right[i - 2]:
                found, done = cost[i - 2, j - 2]
                ways.append((found + 1, [*done, ("swap", at(right, i - 2), at(right, i - 1))]))
            doubled = {"insert", "delete"}
            cost[i, j] = min(ways, key=lambda w: (w[0], -sum(a == b for kind, a, b in w[1] if kind in doubled)))
    number, path = cost[n, m]
    return path if number <= MOST_EDITS else None


def estimate() -> dict[str, object]:
    """Count edits, and divide them by how often they could have happened; 1 is the average number per letter."""
    size = len(LETTERS)
    counts: Counter[tuple[str, int, int]] = Counter()
    letters: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    for wrong, right in misspellings("tune"):
        path = edits(wrong, right)
        if path is None:
            continue
        counts.update(path)
        classes = [START, *(LETTERS.index(letter) for letter in right)]
        letters.update(classes)
        pairs.update(itertools.pairwise(classes))
    whole = sum(counts.values()) / sum(n for letter, n in letters.items() if letter != START)  # edits per letter
    kinds = Counter(kind for kind, _, _ in counts.elements())
    share = {kind: number / sum(kinds.values()) for kind, number in kinds.items()}
    print({kind: round(number, 3) for kind, number in share.items()}, f"{whole:.3f} edits per letter", file=sys.stderr)

    def weight(kind: str, a: int, b: int, seen: int, prior: float) -> float:
        return float(f"{(counts[kind, a, b] / whole + PRIOR * prior) / (seen + PRIOR):.3g}")

    def slip(kind: str, a: int, b: int) -> float:
        """Return the prior of a letter that is typed instead of another one, or after it."""
        even = (1 - SLIPS) * share[kind] / size
        near = neighbours(LETTERS[a]) if a != START else []
        return even + (SLIPS * share[kind] / len(near) if near and LETTERS[b] in near else 0.0)

    every, first = range(size), range(size + 1)
    return {
        "source": "counts of edits in the dictionary of codespell (from the English Wikipedia, CC BY-SA 3.0)",
        "letters": LETTERS,
        "insert": [[weight("insert", a, b, letters[a], slip("insert", a, b)) for b in every] for a in first],
        "delete": [[weight("delete", a, b, pairs[a, b], share["delete"]) for b in every] for a in first],
        "substitute": [
            [0.0 if a == b else weight("substitute", a, b, letters[a], slip("substitute", a, b)) for b in every]
            for a in every
        ],
        "swap": [[0.0 if a == b else weight("swap", a, b, pairs[a, b], share["swap"]) for b in every] for a in every],
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(estimate()).replace("], [", "],\n[") + "\n")
