"""How well maps of another kind are told from usual ones: python benchmarks/outlier_maps.py RUN usual.npz other.npz

Test maps of the run's own data are ranked together with test maps of another data set with as many classes. Figures are
the area under the ROC curve and the average precision, with errors by resampling maps. Scores: plain bits per pixel
(a bound, averaged over draws), bits less those of xz or of a run trained on mutated maps, the distance from the mean
bits of validation maps, and xz alone.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from arguments import given
from outliers import area, precision, with_error
from torch import Tensor

from unordinal.api import load
from unordinal.cli.parsing import POSITIONAL
from unordinal.tasks.surprise import xz_bits


@dataclass(frozen=True)
class Args:
    run: Annotated[str, POSITIONAL]
    """A run of maps."""
    usual: Annotated[Path, POSITIONAL]
    """Its data, an .npz with val and test."""
    other: Annotated[Path, POSITIONAL]
    """Other maps, an .npz with test."""
    background: str | None = None
    """A run trained on mutated maps (`unordinal train ... --mutate 0.1`)."""
    num: int = 150
    """Maps of each kind."""
    out: Path | None = None
    """Write the figures to this JSON file."""


def maps(path: Path, split: str, num: int) -> list[Tensor]:
    found = np.load(path)[split]
    picked = np.linspace(0, len(found) - 1, min(num, len(found))).round().astype(np.int64)
    return [torch.from_numpy(row.astype(np.int64)) for row in found[picked]]


def main(args: Args) -> None:
    run = load(args.run)
    usual, other = maps(args.usual, "test", args.num), maps(args.other, "test", args.num)
    every = [*usual, *other]
    plain = np.array([b.per_symbol for b in run.bits(every)])
    typical = float(np.mean([b.per_symbol for b in run.bits(maps(args.usual, "val", args.num))]))
    xz = np.array([xz_bits(x) / x.numel() for x in every])
    scores = {"plain": plain, "against xz": plain - xz, "typical": np.abs(plain - typical), "xz": xz}
    if args.background:
        scores["against mutated"] = plain - np.array([b.per_symbol for b in load(args.background).bits(every)])
    rows = []
    for name, values in scores.items():
        auc, ap = (with_error(f, values[: len(usual)], values[len(usual) :]) for f in (area, precision))
        rows.append({"score": name, "auc": auc, "ap": ap})
        means = f"{values[: len(usual)].mean():.3f} and {values[len(usual) :].mean():.3f}"
        print(f"{name:<18} AUC {auc[0]:.3f} ± {auc[1]:.3f}, AP {ap[0]:.3f} ± {ap[1]:.3f}; means {means}", flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main(given(Args, __doc__))
