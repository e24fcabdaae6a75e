"""How well gaps are filled: python benchmarks/filling.py text8.prefix.xz

Single characters of test windows are blanked at random, and the likeliest character is compared with the right one,
under a masked diffusion and under count models of order 5 that read from the left and from the right. Then one whole
word of every window is blanked, and its place among ten proposals is counted.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from arguments import given
from contexts import probabilities
from torch import Tensor

from unordinal.api import load
from unordinal.cli.parsing import POSITIONAL
from unordinal.data import load_data
from unordinal.evaluate.counts import CountModel
from unordinal.tasks.filling import fill, judge_of

K, LENGTH, ORDER = 27, 256, 5
LEAST_LETTERS = 4  # of a word that is blanked
PROPOSALS = 10


@dataclass(frozen=True)
class Args:
    data: Annotated[str, POSITIONAL]
    """The text that the models were trained on, with the same split."""
    split: str = "5977825,300000,300000"
    """TRAIN,VAL,TEST."""
    num: int = 400
    """Windows of 256 characters of the test split."""
    words: int = 400
    """How many of them also have a word blanked."""
    word_window: int = 256
    """Characters of those that are shown, from the start of the window."""
    shares: tuple[float, ...] = (0.01, 0.1, 0.3)
    """Shares of characters that are blanked."""
    run: str = "pretrained:text8-absorbing"
    """The run of a masked diffusion."""
    judge: str = "pretrained:text8-arm"
    """The exact model that ranks proposals."""
    out: Path | None = None
    """Write the figures to this JSON file."""


class TwoSided:
    """Count models of order 5 from either side: p(c | left) p(c | right) / p(c), up to the nearest blank."""

    def __init__(self, train: np.ndarray):
        self.left = [CountModel(train, K, order) for order in range(ORDER + 1)]
        self.right = [CountModel(train[::-1].copy(), K, order) for order in range(ORDER + 1)]
        self.single = np.bincount(train, minlength=K) / len(train)

    def predicted(self, row: np.ndarray, place: int) -> int:
        """Return the likeliest symbol of a place of a row in which blanks are -1."""
        log_p = -np.log(self.single)
        for models, before in ((self.left, row[:place]), (self.right, row[:place:-1])):
            near = before[-ORDER:]
            blanks = np.flatnonzero(near < 0)
            context = near[blanks[-1] + 1 :] if len(blanks) else near
            contexts = np.repeat(context[None], K, axis=0)
            log_p = log_p + np.log(probabilities(models[len(context)], contexts, np.arange(K)))
        return int(log_p.argmax())


def share_of(hits: list[bool]) -> tuple[float, float]:
    """Return a share and its standard error."""
    values = np.array(hits, float)
    return float(values.mean()), float(values.std() / len(values) ** 0.5)


@torch.no_grad()
def by_diffusion(run: str, blanked: Tensor) -> Tensor:
    """Return the likeliest symbols of blanked windows (N, L), in which blanks are -1."""
    model = load(run).model
    hidden = torch.where(blanked < 0, K, blanked)
    parts = [model.logits(part, torch.ones(len(part))).argmax(-1) for part in hidden.split(16)]  # type: ignore[operator]
    return torch.cat(parts)


def main(args: Args) -> None:
    data = load_data(args.data, alphabet="text8", split=args.split, length=LENGTH)
    x = data.test.examples(np.linspace(0, len(data.test) - 1, args.num).round().astype(np.int64)).long()
    counts = TwoSided(data.train.symbols.astype(np.int64))
    rows: list[dict[str, object]] = []
    print(f"{'blanked':>8}{'masked diffusion':>22}{'two-sided counts':>22}")
    for share in args.shares:
        hidden = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < share
        blanked = torch.where(hidden, -1, x)
        ours = (by_diffusion(args.run, blanked) == x)[hidden].tolist()
        theirs = []
        for row, clean in zip(blanked.numpy(), x.numpy(), strict=True):
            theirs += [counts.predicted(row, int(place)) == clean[place] for place in np.flatnonzero(row < 0)]
        found = {"masked diffusion": share_of(ours), "two-sided counts": share_of(theirs)}
        rows.append({"blanked": share, **found})
        print(
            f"{100 * share:>7.0f}%" + "".join(f"{100 * a:>14.2f} ± {100 * e:.2f}" for a, e in found.values()),
            flush=True,
        )
    rows.append(whole_words(x[: args.words, : args.word_window], args))
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


def whole_words(x: Tensor, args: Args) -> dict[str, object]:
    """Blank one word of every window and count how often it is among the first proposals."""
    run, judge = load(args.run), judge_of(load(args.judge).model)
    random = np.random.default_rng(0)
    ranks: list[int] = []
    for row in x:
        text = run.spec.show(row)
        words = [word for word in text.split(" ")[1:-1] if len(word) >= LEAST_LETTERS]
        if not words:
            continue
        word = words[random.integers(len(words))]
        start = text.index(f" {word} ") + 1
        known = row.clone()
        known[start : start + len(word)] = -1
        found, _ = fill(run.model, known, num=PROPOSALS, judge=judge)
        right = (found == row).all(1).nonzero().flatten().tolist()
        ranks.append(right[0] + 1 if right else 0)
    found_at = {num: share_of([0 < rank <= num for rank in ranks]) for num in (1, 3, 5, 10)}
    print(f"\n{len(ranks)} words of at least {LEAST_LETTERS} letters, among the first")
    for num, (share, error) in found_at.items():
        print(f"{num:>4}: {100 * share:.1f} ± {100 * error:.1f} %")
    return {"words": len(ranks), **{f"among {num}": value for num, value in found_at.items()}}


if __name__ == "__main__":
    main(given(Args, __doc__))
