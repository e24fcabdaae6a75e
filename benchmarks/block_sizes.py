"""Bits, and seconds per sample, by the size of blocks: python benchmarks/block_sizes.py race/block --out blocks

Scores a run of blocks on its val split, or several runs that were trained with blocks of other sizes, and times their
samples, interleaved: blocks draw one position per call, from a cache of the blocks before. Writes blocks.json and
blocks.png; runs of other recipes may be given as references.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from arguments import given
from timing import interleaved

from unordinal.api import Run, load
from unordinal.cli.parsing import POSITIONAL
from unordinal.evaluate.likelihood import Evaluate
from unordinal.runs.data import data_for
from unordinal.tasks.drawing import draw


@dataclass(frozen=True)
class Args:
    runs: Annotated[tuple[str, ...], POSITIONAL]
    """Runs; those of blocks are taken at the size of blocks that they were trained for."""
    data: str | None = None
    """The text, in place of the runs' own data."""
    sizes: tuple[str, ...] = ()
    """Sizes of blocks, such as 1 4 all, at which a single run is taken."""
    num: int | None = None
    """Examples of val to score; default all."""
    samples: int = 8
    """Samples that are drawn at a time."""
    rounds: int = 3
    """Rounds of the timing, of which the median is taken."""
    calls: int | None = None
    """Network calls of a whole sample of a diffusion; default one for each position."""
    out: Path = Path("blocks")
    """Folder of the figures and of the picture."""


def contestants(args: Args) -> dict[str, Run]:
    """Return the runs to score and to time, by name."""
    if not args.sizes:
        return {Path(path).name: load(path) for path in args.runs}
    run = load(args.runs[0])
    found = {f"block {size}": run.at(size if size == "all" else int(size)) for size in args.sizes}
    return found | {Path(path).name: load(path) for path in args.runs[1:]}


def seconds_of(runs: dict[str, Run], args: Args) -> dict[str, float]:
    """Return the seconds that each run takes for a batch of samples."""

    def drawing(run: Run) -> Any:
        given: dict[str, Any] = {}
        if run.model.denoiser is not None:
            given = {"steps": args.calls or run.model.event_shape.numel()}
        return lambda: draw(run.model, args.samples, batch_size=args.samples, **given)

    return interleaved({name: drawing(run) for name, run in runs.items()}, args.rounds)


def main(args: Args) -> None:
    runs = contestants(args)
    rows: list[dict[str, Any]] = []
    for name, run in runs.items():
        repeats = None if run.model.is_exact else 2
        asked = Evaluate(split="val", num_examples=args.num, repeats=repeats)
        score = run.scored(asked, data_for(run, args.data))
        block = getattr(run.model, "block", None) or (1 if run.model.is_exact else run.spec.event_shape[0])
        rows.append({"name": name, "block": block, "recipe": run.config.recipe, **score.to_dict()})
        print(f"{name:<28}{score}", flush=True)
    seconds = seconds_of(runs, args)
    for row in rows:
        row["seconds_per_sample"] = seconds[row["name"]] / args.samples
        print(f"{row['name']:<28}{row['seconds_per_sample']:>9.3f} s per sample", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    found = {"samples": args.samples, "threads": torch.get_num_threads(), "rows": rows}
    (args.out / "blocks.json").write_text(json.dumps(found, indent=1) + "\n")
    draw_curves(rows, args.out / "blocks.png")


def draw_curves(rows: list[dict[str, Any]], picture: Path) -> None:
    """Draw bits and seconds against the size of blocks; other models are horizontal lines."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6))
    own = sorted((row for row in rows if row["recipe"] == "block"), key=lambda row: row["block"])
    for axis, key, label in zip(
        axes, ("bits_per_dim", "seconds_per_sample"), ("bits per character", "seconds per sample"), strict=True
    ):
        axis.plot([row["block"] for row in own], [row[key] for row in own], marker="o", color="#1b7837", label="block")
        others = [row for row in rows if row["recipe"] != "block"]
        for row, style in zip(others, ("--", ":", "-.", (0, (1, 4))), strict=False):
            axis.axhline(row[key], color="#5f6368", linestyle=style, label=row["recipe"])
        axis.set(xlabel="positions of a block", ylabel=label, xscale="log")
        axis.minorticks_off()
        axis.set_xticks([row["block"] for row in own], [str(row["block"]) for row in own])
        axis.set_ylim(bottom=0 if key == "seconds_per_sample" else None)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    main(given(Args, __doc__))
