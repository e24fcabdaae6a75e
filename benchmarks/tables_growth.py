"""How the cost of tables grows with rows, columns and classes: seconds to read, seconds per step, memory.

Every table is generated, written to a CSV file, and read and trained in a process of its own, whose peak memory is
reported. The last line has the rows and columns of a large table.

    python benchmarks/tables_growth.py
    python benchmarks/tables_growth.py --only 1000000,20,32
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

STEPS = 30
CASES = (  # rows, columns, classes
    (1_000, 10, 8), (10_000, 10, 8), (100_000, 10, 8), (1_000_000, 10, 8),
    (10_000, 100, 8), (10_000, 1_000, 8),
    (10_000, 10, 2), (10_000, 10, 100), (10_000, 10, 1_000), (100_000, 10, 10_000),
    (1_000_000, 20, 32),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="ROWS,COLUMNS,CLASSES of one case")
    parser.add_argument("--model", default="arm")
    parser.add_argument("--path", type=Path, help="train on this file, in this process (used by the script itself)")
    args = parser.parse_args()
    if args.path is not None:
        print(json.dumps(trained(args.path, args.model)))
        return
    cases = CASES if args.only is None else [tuple(map(int, args.only.split(",")))]
    print(f"{'rows':>9} {'columns':>7} {'classes':>7} {'read s':>7} {'s/step':>7} {'batch':>5} {'peak MB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for num, columns, classes in cases:
            path = Path(folder) / "table.csv"
            write_table(path, num, columns, classes)
            command = [sys.executable, __file__, "--path", str(path), "--model", args.model]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                print(f"{num:9,} {columns:7,} {classes:7,} failed: {done.stderr.strip().splitlines()[-1][:200]}")
                continue
            found = json.loads(done.stdout.strip().splitlines()[-1])
            cost = f"{found['read']:7.1f} {found['step']:7.3f} {found['batch']:5} {found['peak']:8,.0f}"
            print(f"{num:9,} {columns:7,} {classes:7,} {cost}", flush=True)


def write_table(path: Path, num: int, columns: int, classes: int) -> None:
    """Write a table whose columns depend on the ones before them."""
    rng = np.random.default_rng(0)
    with path.open("w") as file:
        file.write(",".join(f"c{c}" for c in range(columns)) + "\n")
        for begin in range(0, num, 50_000):
            rows = min(50_000, num - begin)
            x = rng.integers(0, classes, (rows, columns))
            copies = rng.random((rows, columns)) < 0.5
            for c in range(1, columns):
                x[:, c] = np.where(copies[:, c], x[:, c - 1], x[:, c])
            np.savetxt(file, x, fmt="v%d", delimiter=",")


def trained(path: Path, model: str) -> dict[str, float]:
    """Read a table and train for a few steps; return the cost."""
    import unordinal
    from unordinal.data import load_data

    began = time.monotonic()
    data = load_data(path)
    read = time.monotonic() - began
    times = []
    for steps in (1, 1, 1 + STEPS):  # the difference of the last two leaves out what happens once
        began = time.monotonic()
        run = unordinal.fit(model, data, steps=steps, progress=False, validate_examples=100)
        times.append(time.monotonic() - began)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"read": read, "step": (times[2] - times[1]) / STEPS, "batch": run.config.train.batch_size, "peak": peak}


if __name__ == "__main__":
    main()
