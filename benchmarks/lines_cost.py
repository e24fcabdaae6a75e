"""Training speed with lines of 5 to 200 symbols, against lines of one length with the same number of symbols in all.

The contestants take turns; a ratio of 1 means that short lines do not pay for long ones.

    python benchmarks/lines_cost.py
"""

import argparse
import json
import statistics
import time
from typing import Any

import numpy as np

from unordinal.api import fit

SHORTEST, LONGEST, LINES = 5, 200, 4000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--models", nargs="*", default=["arm", "absorbing"])
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    lengths = rng.integers(SHORTEST, LONGEST + 1, LINES)
    letters = np.array(list("abcdefgh"))
    mixed = ["".join(rng.choice(letters, size)) for size in lengths]
    equal = ["".join(rng.choice(letters, round(lengths.mean()))) for _ in range(LINES)]
    for model in args.models:
        speeds: dict[str, list[float]] = {"mixed": [], "equal": []}
        for _ in range(args.rounds):
            for name, texts in (("mixed", mixed), ("equal", equal)):
                speeds[name].append(symbols_per_second(model, texts, args.steps))
        ratios = [one / other for one, other in zip(speeds["mixed"], speeds["equal"], strict=True)]
        found: dict[str, Any] = {name: round(statistics.median(values)) for name, values in speeds.items()}
        print(json.dumps({"model": model, **found, "ratio": round(statistics.median(ratios), 3)}), flush=True)


def symbols_per_second(model: str, texts: list[str], steps: int) -> float:
    """Return how many symbols per second are trained, without the time of validation."""
    began = time.monotonic()
    fit(model, texts, steps=1, batch_size=32, validate_examples=1, progress=False)
    start = time.monotonic() - began
    began = time.monotonic()
    fit(model, texts, steps=1 + steps, batch_size=32, validate_examples=1, validate_every=10**6, progress=False)
    return steps * 32 * float(np.mean([len(text) for text in texts])) / (time.monotonic() - began - start)


if __name__ == "__main__":
    main()
