"""Race models of tables on one table, all values as classes: bits, two-sample AUC, imputation, outliers, seconds.

The contestants of tables_contestant.py run with the Python of another environment (tables_race.txt). Everything runs in
turn on all cores. Rows of the test part with values that the training part lacks are left out for all.

    python benchmarks/tables_race.py --table adult.csv.xz --minutes 4.5 --python race/bin/python --out race
"""

import argparse
import json
import math
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unordinal.api import Run, fit
from unordinal.data import frame_of
from unordinal.data.tables import TableSource
from unordinal.numerics import standard_error
from unordinal.tasks.cells import FillRows, MeasureRows, fill_rows, read_rows, row_bits, suspicious_cells
from unordinal.tasks.synthetic import repeated, two_sample_auc

SHARE_REMOVED = 0.2
OURS: dict[str, dict[str, Any]] = {
    "independent": {},
    "chow-liu": {},
    "arm, any order": {},
    "arm, given order": {"order": "given"},
    "absorbing": {},
}
THEIRS = ("mostlyai-fixed", "mostlyai-any", "ctgan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True)
    parser.add_argument("--minutes", type=float, default=4.5)
    parser.add_argument("--python", help="of the environment with the other contestants")
    parser.add_argument("--out", type=Path, default=Path("race"))
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    frame = frame_of(args.table)
    num = len(frame)
    held = num // 20
    train, val, test = frame[: num - 2 * held], frame[num - 2 * held : num - held], frame[num - held :]
    is_known = np.ones(len(test), bool)
    for name in frame:
        is_known &= (test[name].isna() | test[name].isin(train[name])).to_numpy()
    test = test[is_known].reset_index(drop=True)
    rng = np.random.default_rng(0)
    is_hole = (rng.random(test.shape) < SHARE_REMOVED) & test.notna().to_numpy()
    holed = test.mask(is_hole)
    for name, part in {"train": train, "test": test, "holed": holed}.items():
        part.to_csv(args.out / f"{name}.csv", index=False)
    print(f"{len(train):,} training rows; {len(test):,} test rows ({(~is_known).sum()} left out)", flush=True)
    real = pd.concat([val, test])
    names = [name for name in (*OURS, *THEIRS) if not args.only or name in args.only]
    for name in names:
        began = time.monotonic()
        if name in OURS:
            source = TableSource(
                frame=frame, bins=0, shuffle=False, split=f"{len(train)},{held},{num - len(train) - held}"
            )
            budget = {} if name in ("independent", "chow-liu") else {"minutes": args.minutes}
            run = fit(name.split(",")[0], source, progress=False, **budget, **OURS[name])
            result = measured(run, train, test, holed, is_hole, real, rng, fitted=time.monotonic() - began)
        elif args.python:
            script = Path(__file__).with_name("tables_contestant.py")
            done = subprocess.run(
                [args.python, script, name, args.out, str(args.minutes)], check=False, capture_output=True, text=True
            )
            if done.returncode:
                print(name, "failed:", done.stderr[-300:], flush=True)
                continue
            result = theirs(args.out, name, train, test, is_hole, real)
        else:
            continue
        bits = result.pop("each", None)
        if bits is not None:
            np.save(args.out / f"{name.replace(', ', '-')}-bits.npy", bits)
            result |= {"bits_per_row": float(bits.mean()), "error": float(bits.std(ddof=1) / math.sqrt(len(bits)))}
            best = args.out / "arm-any order-bits.npy"
            if best.exists() and len(np.load(best)) == len(bits):
                paired = bits - np.load(best)
                result |= {
                    "less_arm_any": float(paired.mean()),
                    "paired_error": float(paired.std() / math.sqrt(len(bits))),
                }
        print(json.dumps({"name": name, **result}), flush=True)


def accuracy(filled: pd.DataFrame, test: pd.DataFrame, is_hole: np.ndarray) -> float:
    same = filled[list(test)].astype(str).to_numpy() == test.astype(str).to_numpy()
    return float(same[is_hole].mean())


def fidelity(new: pd.DataFrame, train: pd.DataFrame, real: pd.DataFrame) -> dict[str, float]:
    """Return the two-sample AUC against held-out rows, and how many rows stand in the training data."""
    codes = {}
    for name in train:
        values = {
            value: code for code, value in enumerate(pd.concat([train, real])[name].fillna("").astype(str).unique())
        }
        codes[name] = values
    parts = []
    for frame in (new, train, real):
        columns = [frame[name].fillna("").astype(str).map(codes[name]).fillna(-1).to_numpy(int) for name in train]
        parts.append(np.stack(columns, axis=1))
    x, seen, held = parts
    share = repeated(held, seen)
    return {
        "auc": two_sample_auc(x, held, 0),
        "auc_train": two_sample_auc(seen, held, 0),
        "repeated": repeated(x, seen),
        "repeated_held_out": share,
        "repeated_error": math.sqrt(share * (1 - share) / len(held)),
    }


def measured(
    run: Run,
    train: pd.DataFrame,
    test: pd.DataFrame,
    holed: pd.DataFrame,
    is_hole: np.ndarray,
    real: pd.DataFrame,
    rng: np.random.Generator,
    *,
    fitted: float,
) -> dict[str, Any]:
    """Return the figures of one of our models."""
    model, spec, seconds = run.model, run.spec, {"fit": fitted}
    rows = read_rows(spec, test)
    missing = np.array([-1 if column.missing is None else column.missing for column in spec.schema])
    began = time.monotonic()
    x = np.where(rows.known.numpy() < 0, missing, rows.known.numpy())
    score = run.score(x, per_example=not model.is_exact)
    each = np.array(score.per_example) * score.dimensions
    seconds["score"], began = time.monotonic() - began, time.monotonic()
    new = run.sample(len(train))
    seconds["sample"], began = time.monotonic() - began, time.monotonic()
    result: dict[str, Any] = {"kind": score.kind, "each": each, **fidelity(new, train, real)}
    if model.conditional is not None:
        began = time.monotonic()
        result["imputed"] = accuracy(fill_rows(model, spec, FillRows(holed))[0], test, is_hole)
        seconds["fill"] = time.monotonic() - began
        result |= outliers(run, test, rng)
    return {**result, "seconds": {name: round(value, 1) for name, value in seconds.items()}}


def outliers(run: Run, test: pd.DataFrame, rng: np.random.Generator) -> dict[str, float]:
    """Redraw two cells of each row from other rows; return how well rows and cells are found."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(1)
    known = read_rows(run.spec, test).known
    broken, is_broken = known.clone(), np.zeros(known.shape, bool)
    for row in range(len(known)):
        for place in rng.permutation(known.shape[1]):
            others = known[:, place][(known[:, place] >= 0) & (known[:, place] != known[row, place])]
            if known[row, place] >= 0 and len(others) and is_broken[row].sum() < 2:
                broken[row, place] = others[rng.integers(len(others))]
                is_broken[row, place] = True
    asked = MeasureRows(None)
    bits = np.concatenate([row_bits(run.model, run.spec, x, asked).numpy() for x in (known, broken)])
    cells = suspicious_cells(run.model, run.spec, broken, asked)
    named = is_broken[np.arange(len(known)), cells.log_odds.argmax(dim=1).numpy()]
    labels = np.arange(len(bits)) >= len(known)
    return {
        "outlier_auc": float(roc_auc_score(labels, bits)),
        "named": float(named.mean()),
        "named_error": standard_error(__import__("torch").from_numpy(named.astype(float))) or 0.0,
        "named_by_chance": float(is_broken.mean()),
    }


def theirs(
    folder: Path, name: str, train: pd.DataFrame, test: pd.DataFrame, is_hole: np.ndarray, real: pd.DataFrame
) -> dict[str, Any]:
    """Return the figures of another contestant from the files that it left."""

    def read(what: str) -> pd.DataFrame:
        return pd.read_csv(folder / f"{name}-{what}.csv", dtype=str, keep_default_na=False).replace("", None)

    seconds = json.loads((folder / f"{name}-times.json").read_text())
    result: dict[str, Any] = {"seconds": {key: round(value, 1) for key, value in seconds.items()}}
    if (folder / f"{name}-bits.csv").exists():
        result["each"] = pd.read_csv(folder / f"{name}-bits.csv")["bits"].to_numpy()
    result |= fidelity(read("new"), train, real)
    if (folder / f"{name}-filled.csv").exists():
        result["imputed"] = accuracy(read("filled"), test, is_hole)
    return result


if __name__ == "__main__":
    main()
