"""How time and memory of a training step grow with length, classes, batch and processes, for the five main models.

    python benchmarks/cost.py --out docs/results            # every model and axis; about ten minutes on two cores
    python benchmarks/cost.py --only processes      # one process of two threads against two of one, interleaved

Each point is measured in a process of its own, so that its memory is its own: the median of a few steps of size tiny,
in one process of two threads. An axis ends where a step takes more than ten seconds or twelve gigabytes.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

MODELS = ("arm", "multinomial", "absorbing", "argmax-ar", "argmax-coupling")
AXES: dict[str, tuple[int, ...]] = {"length": (64, 256, 1024, 4096), "classes": (4, 27, 256, 4096), "batch": (1, 8, 64)}
USUAL = {"length": 128, "classes": 27, "batch": 8}
MOST_SECONDS, MOST_MEGABYTES, STEPS, ROUNDS = 10.0, 12_000, 3, 5
SYMBOLS = 300_000


def measured_here(model: str, length: int, classes: int, batch: int) -> dict[str, float]:
    """Train a few steps in this process."""
    import numpy as np
    import torch

    from unordinal.data import load_data
    from unordinal.recipes import configured
    from unordinal.runs.folder import RunFolder
    from unordinal.train.loop import Loop

    config = configured(model, "tiny", "sequences")
    symbols = np.random.default_rng(0).integers(0, classes, SYMBOLS)
    data = load_data(symbols, length=length, num_classes=classes)
    torch.manual_seed(0)
    built = config.model.build(data.spec)
    train = replace(config.train, batch_size=batch, steps=1000, minutes=None, accumulate=None)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(built, data, train, config.optim, RunFolder(Path(folder)), torch.device("cpu"))
        seconds = []
        for _ in range(STEPS + 1):
            began = time.perf_counter()
            loop.train_step()
            seconds.append(time.perf_counter() - began)
            if seconds[-1] > MOST_SECONDS:
                break
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": statistics.median(seconds[1:] or seconds),
        "megabytes": held / 1024,
        "added": (held - before) / 1024,
        "parameters": sum(p.numel() for p in built.parameters()),
    }


def measured(model: str, **at: int) -> dict[str, Any] | None:
    """Measure a point in a process of its own; None if that ran out of memory or of patience."""
    words = [sys.executable, __file__, "--worker", json.dumps({"model": model, **at})]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=180, check=False)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def all_points(models: tuple[str, ...]) -> list[dict[str, Any]]:
    points = []
    for model in models:
        for axis, values in AXES.items():
            for value in values:
                found = measured(model, **{**USUAL, axis: value})
                if found is None:
                    print(f"{model:16} {axis} {value}: out of memory or time", flush=True)
                    break
                points.append({"model": model, "axis": axis, "value": value, **found})
                print(
                    f"{model:16} {axis:8} {value:6}  {1000 * found['seconds']:9.1f} ms  {found['megabytes']:8.0f} MB",
                    flush=True,
                )
                if found["seconds"] > MOST_SECONDS or found["megabytes"] > MOST_MEGABYTES:
                    break
    return points


def draw(points: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    figure, panels = plt.subplots(2, len(AXES), figsize=(12, 6.5), sharey="row")
    for column, axis in enumerate(AXES):
        for model in dict.fromkeys(point["model"] for point in points):
            mine = [point for point in points if point["model"] == model and point["axis"] == axis]
            x = [point["value"] for point in mine]
            panels[0][column].plot(x, [point["seconds"] for point in mine], marker="o", markersize=3, label=model)
            panels[1][column].plot(x, [point["megabytes"] for point in mine], marker="o", markersize=3, label=model)
        for row, name in enumerate(("seconds per training step", "peak memory of the process, MB")):
            panel = panels[row][column]
            panel.set(xscale="log", yscale="log", xlabel=axis, ylabel=name if column == 0 else "")
            panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize=8)
    usual = ", ".join(f"{name} {value}" for name, value in USUAL.items())
    figure.suptitle(f"Training steps of size tiny; what is not on an axis is {usual}")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def speed(processes: int, threads: int, accumulate: int, folder: Path) -> float:
    """Symbols per second of a short training of the tiny diffusion."""
    out = folder / f"run-{time.monotonic_ns()}"
    words = ["train", "multinomial", "--data", str(folder / "book.txt"), "--steps", "40", "--json", "--out", str(out)]
    words += ["--validate-every", "1000", "--accumulate", str(accumulate), "--threads", str(threads)]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    command = [sys.executable, *(launcher if processes > 1 else []), "-m", "unordinal", *words]
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "UNORDINAL_DATA": str(folder / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=True)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert done.returncode == 0
    times = [line["seconds"] for line in lines if "loss" in line]
    steps = [line["step"] for line in lines if "loss" in line]
    from unordinal.runs.folder import RunFolder

    config, spec = RunFolder(out).read()
    symbols = config.train.batch_size * spec.event_shape[0]
    return (steps[-1] - steps[0]) * symbols / (times[-1] - times[0])  # without the first steps, which are slower


def race(rounds: int) -> dict[str, list[float]]:
    """One process of two threads, two of one, and four of one, in turns."""
    contestants = {
        "1 process, 2 threads": (1, 2),
        "2 processes, 1 thread each": (2, 1),
        "1 process, 1 thread": (1, 1),
        "4 processes, 1 thread each": (4, 1),
    }
    found: dict[str, list[float]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "book.txt").write_text("it is a truth universally acknowledged that a single man " * 2000)
        for number in range(rounds):
            for contestant, (processes, threads) in contestants.items():
                found[contestant].append(speed(processes, threads, 8, folder))
                print(f"round {number + 1}: {contestant}: {found[contestant][-1]:,.0f} symbols/s", flush=True)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write cost.png and cost-points.json to this folder")
    parser.add_argument("--only", choices=("processes", "models"))
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(measured_here(**json.loads(args.worker))))
        return 0
    found: dict[str, Any] = {}
    if args.only != "processes":
        found["points"] = all_points(tuple(args.models))
        if args.out:
            draw(found["points"], args.out / "cost.png")
    is_as_fast = True
    if args.only != "models":
        found["processes"] = race(args.rounds)
        medians = {name: statistics.median(values) for name, values in found["processes"].items()}
        for name, value in medians.items():
            print(f"{name}: median {value:,.0f} symbols/s, {value / medians['1 process, 2 threads']:.2f}")
        is_as_fast = medians["2 processes, 1 thread each"] >= medians["1 process, 2 threads"]
        print(f"two processes of one thread are at least as fast as one of two threads: {is_as_fast}")
    if args.out:
        (args.out / "cost-points.json").write_text(json.dumps(found, indent=1) + "\n")
    return 0 if is_as_fast else 1


if __name__ == "__main__":
    sys.exit(main())
