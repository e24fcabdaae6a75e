"""What do samplers cost that choose their order? Exact likelihoods next to the ELBO, on the same examples.

    python benchmarks/orders.py race/absorbing race/block --num 200 --out orders.json

For every run, order and number of network calls: bits per symbol of that sampler, exact, and how much they differ from
the ELBO of the run, paired over examples. The likelihood of a sampler is another distribution's than that of the ELBO.
"""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from arguments import given

from unordinal.api import Run, load
from unordinal.cli.parsing import POSITIONAL
from unordinal.evaluate.likelihood import Evaluate
from unordinal.numerics import standard_error
from unordinal.runs.data import data_for


@dataclass(frozen=True)
class Args:
    runs: Annotated[tuple[str, ...], POSITIONAL]
    """Runs of masked or block diffusions."""
    data: str | None = None
    """A text or maps, in place of the run's own data."""
    num: int = 200
    """Examples, the first of the split."""
    split: str = "val"
    """The split."""
    orders: tuple[str, ...] = ("left-to-right", "random", "confidence", "entropy", "margin")
    """Orders."""
    calls: tuple[int, ...] = ()
    """Network calls besides one for each position."""
    budgets: tuple[float, ...] = ()
    """Nats of a call of the order entropy."""
    repeats: int = 64
    """Draws of the ELBO of each example."""
    block: str | None = None
    """The size of blocks, for models of blocks."""
    out: Path = Path("orders.json")
    """File of the figures."""


def asked(args: Args) -> list[dict[str, Any]]:
    """Return what is scored besides the ELBO."""
    every: list[dict[str, Any]] = [{"order": order} for order in args.orders]
    several = [order for order in args.orders if order != "random"]
    every += [{"order": order, "calls": calls} for order in several for calls in args.calls]
    return every + [{"order": "entropy", "budget": budget} for budget in args.budgets]


def values(run: Run, data: Any, args: Args, **settings: Any) -> tuple[np.ndarray, str]:
    """Return the bits per symbol of every example, and the kind of the score."""
    split: Any = args.split
    score = run.scored(Evaluate(split=split, num_examples=args.num, **settings), data)
    assert score.per_example is not None
    return np.array(score.per_example), score.kind


def scored(path: str, args: Args) -> list[dict[str, Any]]:
    """Return a row for the ELBO of a run, and one for each order."""
    run = load(path)
    data = data_for(run, args.data)
    run = run if args.block is None else run.at(args.block if args.block == "all" else int(args.block))
    bound, kind = values(run, data, args, per_example=True, repeats=args.repeats)
    rows = [{"run": path, "kind": kind, "bits": bound.mean(), "error": error_of(bound), "settings": {}}]
    show(rows[-1], 0.0)
    for settings in asked(args):
        began = time.monotonic()
        bits, kind = values(run, data, args, **settings)
        row = {"run": path, "kind": kind, "bits": bits.mean(), "error": error_of(bits), "settings": settings}
        row |= {"less": (bits - bound).mean(), "less_error": error_of(bits - bound)}
        rows.append(row)
        show(row, time.monotonic() - began)
    return rows


def error_of(values: np.ndarray) -> float:
    import torch

    found = standard_error(torch.from_numpy(values))
    return math.nan if found is None else found


def show(row: dict[str, Any], seconds: float) -> None:
    paired = f"{row['less']:>+10.4f} ± {row['less_error']:.4f}" if "less" in row else f"{'':>19}"
    print(f"{row['kind']:<52}{row['bits']:>9.4f} ± {row['error']:.4f}{paired}{seconds:>8.0f} s", flush=True)


def main(args: Args) -> None:
    found = []
    for path in args.runs:
        print(f"\n{path}: bits per symbol, and the difference from the ELBO on the same {args.num} examples")
        found += scored(path, args)
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main(given(Args, __doc__))
