"""Which sampler gives the best text for so many network calls?

    python benchmarks/sampling_race.py race/absorbing race/uniform --data text8.prefix.xz --out sampling

Samples of every run, sampler and number of network calls are judged by an order-5 count model of the training text and
by an autoregressive model (cross-entropy in bits per character, lower is better). A judge alone can be fooled by
samples that all say the same, so the table also shows the entropy of single characters and the entropy of a character
given the one before it; both should be near those of the text.
"""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from arguments import given
from torch import Tensor

from unordinal.api import Run, load
from unordinal.cli.parsing import POSITIONAL
from unordinal.data import load_data
from unordinal.evaluate.counts import CountModel
from unordinal.tasks.drawing import draw

ABSORBING_SAMPLERS = ("ancestral", "first-hitting", "spread", "entropy", "confidence", "corrected")
UNIFORM_SAMPLERS = ("ancestral", "spread", "corrected")


@dataclass(frozen=True)
class Args:
    runs: Annotated[tuple[str, ...], POSITIONAL]
    """Runs of diffusions over a-z and space."""
    data: str
    """The training text."""
    split: str = "6000000,400000,177825"
    """TRAIN,VAL,TEST of the text."""
    judge: str = "pretrained:text8-arm"
    """An autoregressive run over the same alphabet."""
    num: int = 256
    """Samples of each contestant."""
    length: int = 256
    """Characters of a sample."""
    calls: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    """Network calls per sample."""
    samplers: tuple[str, ...] = ()
    """Samplers; default all that suit the noise."""
    long: int = 1000
    """Also draw ancestral samples of uniform noise with so many calls; 0 for none."""
    out: Path = Path("sampling")
    """Folder of the figures and the picture."""
    seed: int = 0
    """Seed of the draws."""


@dataclass(frozen=True)
class Judges:
    """What tells good samples from bad ones."""

    counts: CountModel
    run: Run

    def verdict(self, x: Tensor) -> dict[str, float]:
        """Judge samples (N, L)."""
        by_counts = np.array([self.counts.bits_per_symbol(row) for row in x.numpy().astype(np.uint8)])
        by_model = -np.array([self.bits(part) for part in x.split(16)]).reshape(-1)
        root = math.sqrt(len(x))
        return {
            "counts": by_counts.mean(),
            "counts_error": by_counts.std(ddof=1) / root,
            "arm": by_model.mean(),
            "arm_error": by_model.std(ddof=1) / root,
            "unigram_entropy": entropy(x.numpy(), 1),
            "bigram_entropy": entropy(x.numpy(), 2) - entropy(x[:, :-1].numpy(), 1),
        }

    @torch.no_grad()
    def bits(self, x: Tensor) -> list[float]:
        return (self.run.model.elbo(x) / (math.log(2) * x.shape[1])).tolist()


def entropy(x: np.ndarray, length: int) -> float:
    """Return the entropy in bits of runs of so many symbols in the rows of x."""
    codes = sum(x[:, i : x.shape[1] - length + 1 + i].astype(np.int64) * 64**i for i in range(length))
    p = np.unique(codes, return_counts=True)[1] / codes.size
    return float(-(p * np.log2(p)).sum())


def contestants(run: Run, args: Args) -> list[tuple[str, int]]:
    """Return the samplers and their numbers of calls for a run."""
    has_mask = run.config.recipe == "absorbing"
    samplers = args.samplers or (ABSORBING_SAMPLERS if has_mask else UNIFORM_SAMPLERS)
    chosen = [(name, calls) for name in samplers for calls in args.calls if not has_mask or calls <= args.length]
    return chosen if has_mask or not args.long else [*chosen, ("ancestral", args.long)]


def main(args: Args) -> None:
    data = load_data(args.data, alphabet="text8", split=args.split, length=256)
    judges = Judges(CountModel(data.train.symbols, data.spec.num_classes, 5), load(args.judge))
    text = torch.stack([data.test[i][: args.length] for i in range(min(args.num, len(data.test)))])
    heading = f"{'sampler':<15}{'calls':>6}{'counts':>17}{'text8-arm':>17}{'unigram':>9}{'bigram':>8}{'s':>8}"
    print(heading)
    rows: list[dict[str, Any]] = [{"run": "text", "sampler": "the text itself", "calls": 0, **judges.verdict(text)}]
    show(rows[-1], 0.0)
    args.out.mkdir(parents=True, exist_ok=True)
    for path in args.runs:
        run = load(path)
        print(f"\n{path}")
        shape = (args.length,)
        for sampler, calls in contestants(run, args):
            began = time.monotonic()
            drawn = draw(
                run.model, args.num, seed=args.seed, batch_size=64, sampler=sampler, steps=calls, event_shape=shape
            )
            made = {"run": path, "sampler": sampler, "calls": calls, "calls_made": drawn.network_calls}
            rows.append({**made, **judges.verdict(drawn.x), "example": run.spec.show(drawn.x[0])})
            show(rows[-1], time.monotonic() - began)
            (args.out / "sampling.json").write_text(json.dumps(rows, indent=1) + "\n")
    draw_curves(rows, args.out / "sampling.png")


def show(row: dict[str, Any], seconds: float) -> None:
    judged = "".join(f"{row[name]:>9.3f} ± {row[f'{name}_error']:.3f}" for name in ("counts", "arm"))
    entropies = f"{row['unigram_entropy']:>9.3f}{row['bigram_entropy']:>8.3f}"
    print(f"{row['sampler']:<15}{row['calls']:>6}{judged}{entropies}{seconds:>8.0f}", flush=True)


def draw_curves(rows: list[dict[str, Any]], picture: Path) -> None:
    import matplotlib.pyplot as plt

    runs = list(dict.fromkeys(row["run"] for row in rows if row["run"] != "text"))
    figure, axes = plt.subplots(2, len(runs), figsize=(5.2 * len(runs), 7.5), squeeze=False, sharex="col")
    for column, run in enumerate(runs):
        for line, (key, label) in enumerate(
            (("arm", "bits per character under the judge"), ("bigram_entropy", "entropy given the character before"))
        ):
            axis = axes[line][column]
            for sampler in dict.fromkeys(row["sampler"] for row in rows if row["run"] == run):
                own = [row for row in rows if row["run"] == run and row["sampler"] == sampler]
                errors = [row["arm_error"] if key == "arm" else 0.0 for row in own]
                axis.errorbar([r["calls"] for r in own], [r[key] for r in own], errors, marker=".", label=sampler)
            axis.axhline(rows[0][key], color="grey", linestyle=":", label="the text itself")
            axis.set(xscale="log", ylabel=label, title=Path(run).name)
            axis.legend(fontsize=7)
        axes[1][column].set_xlabel("network calls per sample")
    figure.tight_layout()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(given(Args, __doc__))
