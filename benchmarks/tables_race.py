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
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.metrics import roc_auc_score

from unordinal.api import Run, fit
from unordinal.data import frame_of
from unordinal.data.tables import TableSource
from unordinal.tasks.cells import FillRows, fill_rows, read_rows
from unordinal.tasks.suspicion import MeasureRows, row_bits, suspicious_cells
from unordinal.tasks.synthetic import repeated, two_sample_auc

SHARE_REMOVED = 0.2
COUNTED = ("independent", "chow-liu")
OURS: dict[str, dict[str, Any]] = {
    **{name: {} for name in COUNTED},
    "arm, any order": {},
    "arm, given order": {"order": "given"},
    "absorbing": {},
    "multinomial": {},
    "uniform": {},
}
SCIKIT = ("most frequent", "random forest", "isolation forest")
THEIRS = ("mostlyai-fixed", "mostlyai-any", "ctgan", "ecod")
LARGEST_FOREST = 8000  # training rows of each tree's sample: a forest of 116 classes on all rows takes too long


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", required=True, help="a table, or an .npz with train, val and test")
    parser.add_argument("--minutes", type=float, default=4.5)
    parser.add_argument("--python", help="of the environment with the other contestants")
    parser.add_argument("--out", type=Path, default=Path("race"))
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    frame = lettered(args.table) if args.table.endswith(".npz") else frame_of(args.table)
    num = len(frame)
    held = num // 20
    train, val, test = frame[: num - 2 * held], frame[num - 2 * held : num - held], frame[num - held :]
    is_known = np.ones(len(test), bool)
    for name in frame:
        is_known &= (test[name].isna() | test[name].isin(train[name])).to_numpy()
    test = test[is_known].reset_index(drop=True)
    is_hole = (np.random.default_rng(0).random(test.shape) < SHARE_REMOVED) & test.notna().to_numpy()
    broken, is_broken = broken_rows(test)
    parts = {"train": train, "test": test, "holed": test.mask(is_hole), "broken": broken}
    for name, part in parts.items():
        part.to_csv(args.out / f"{name}.csv", index=False)
    print(f"{len(train):,} training rows; {len(test):,} test rows ({(~is_known).sum()} left out)", flush=True)
    race = Race(parts, pd.concat([val, test]), is_hole, is_broken)
    for name in (*OURS, *SCIKIT, *THEIRS):
        if args.only and name not in args.only:
            continue
        began = time.monotonic()
        if name in OURS:
            split = f"{len(train)},{held},{num - len(train) - held}"
            source = TableSource(frame=frame, bins=0, shuffle=False, split=split)
            budget = {} if name in COUNTED else {"minutes": args.minutes}
            run = fit(name.split(",")[0], source, progress=False, **budget, **OURS[name])
            result = race.ours(run, fitted=time.monotonic() - began)
        elif name in SCIKIT:
            result = race.scikit(name)
        elif args.python:
            script = Path(__file__).with_name("tables_contestant.py")
            command = [args.python, script, name, args.out, str(args.minutes)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                print(name, "failed:", done.stderr[-300:], flush=True)
                continue
            result = race.theirs(args.out, name)
        else:
            continue
        print(json.dumps({"name": name, **with_errors(result, name, args.out)}, default=lambda v: round(float(v), 4)))


def with_errors(result: dict[str, Any], name: str, folder: Path) -> dict[str, Any]:
    """Return the result with means, errors and paired differences of figures of single rows or cells."""
    for figure in ("bits_per_row", "named", "imputed"):
        if figure not in result:
            continue
        each = result[figure].astype(float)
        np.save(folder / f"{name}-{figure}.npy", each)
        result[figure] = [each.mean(), each.std(ddof=1) / math.sqrt(len(each))]
        for other in ("chow-liu", "arm, any order"):
            path = folder / f"{other}-{figure}.npy"
            if other != name and path.exists():
                paired = each - np.load(path)
                result[f"{figure} less {other}"] = [paired.mean(), paired.std(ddof=1) / math.sqrt(len(each))]
    return result


def lettered(path: str) -> pd.DataFrame:
    """Return the table of arrays train, val and test, whose values may be indices into the letters of each column."""
    held = np.load(path)
    rows = np.concatenate([held[part] for part in ("train", "val", "test")])
    names = held["columns"] if "columns" in held else [f"c{place}" for place in range(rows.shape[1])]
    letters = held["vocab"] if "vocab" in held else ["".join(chr(65 + k) for k in range(rows.max() + 1))] * len(names)
    columns = {str(name): np.array(list(str(letters[c])), object)[rows[:, c]] for c, name in enumerate(names)}
    return pd.DataFrame(columns).replace("?", None)


def broken_rows(test: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Redraw two cells of each row from other rows until they differ; return the rows and which cells these are."""
    rng, values = np.random.default_rng(1), test.to_numpy(object)
    broken, is_broken, filled = values.copy(), np.zeros(test.shape, bool), test.notna().to_numpy()
    for row in range(len(test)):
        for place in rng.permutation(test.shape[1]):
            others = np.flatnonzero(filled[:, place] & (values[:, place] != values[row, place]))
            if filled[row, place] and len(others) and is_broken[row].sum() < 2:
                broken[row, place] = values[rng.choice(others), place]
                is_broken[row, place] = True
    return pd.DataFrame(broken, columns=test.columns), is_broken


class Race:
    """The tables that all contestants see, and the figures of each contestant."""

    def __init__(self, parts: dict[str, pd.DataFrame], real: pd.DataFrame, is_hole: np.ndarray, is_broken: np.ndarray):
        self.train, self.test, self.holed, self.broken = (parts[name] for name in ("train", "test", "holed", "broken"))
        self.real, self.is_hole, self.is_broken = real, is_hole, is_broken
        every = pd.concat([self.train, real])
        self.codes = {c: {v: k for k, v in enumerate(every[c].fillna("").astype(str).unique())} for c in every}

    def coded(self, frame: pd.DataFrame) -> np.ndarray:
        """Return rows as numbers, -1 for values that the real table lacks."""
        columns = [frame[name].fillna("").astype(str).map(self.codes[name]).fillna(-1) for name in self.codes]
        return np.stack([column.to_numpy(int) for column in columns], axis=1)

    def one_hot(self, x: np.ndarray) -> np.ndarray:
        return np.concatenate([np.eye(len(codes))[x[:, c]] for c, codes in enumerate(self.codes.values())], axis=1)

    def is_right(self, filled: pd.DataFrame) -> np.ndarray:
        """Return whether each of the removed cells was filled with its value."""
        same = filled[list(self.test)].astype(str).to_numpy() == self.test.astype(str).to_numpy()
        return np.asarray(same[self.is_hole])

    def outlier_auc(self, scores: np.ndarray) -> float:
        """Return the area under the curve of scores of the test rows, followed by those of the broken rows."""
        return float(roc_auc_score(np.arange(len(scores)) >= len(self.test), scores))

    def fidelity(self, new: pd.DataFrame) -> dict[str, float]:
        """Return the two-sample AUC against held-out rows, and how many rows stand in the training data."""
        x, seen, held = (self.coded(frame) for frame in (new, self.train, self.real))
        share = repeated(held, seen)
        aucs = {"auc": two_sample_auc(x, held, 0), "auc_train": two_sample_auc(seen, held, 0)}
        error = math.sqrt(share * (1 - share) / len(held))
        return {**aucs, "repeated": repeated(x, seen), "repeated_held_out": share, "repeated_error": error}

    def ours(self, run: Run, *, fitted: float) -> dict[str, Any]:
        """Return the figures of one of our models."""
        model, spec, seconds = run.model, run.spec, {"fit": fitted}
        rows = read_rows(spec, self.test)
        missing = np.array([-1 if column.missing is None else column.missing for column in spec.schema])
        began = time.monotonic()
        x = np.where(rows.known.numpy() < 0, missing, rows.known.numpy())
        score = run.score(x, per_example=not model.is_exact)
        seconds["score"], began = time.monotonic() - began, time.monotonic()
        new = run.sample(len(self.train))
        seconds["sample"], began = time.monotonic() - began, time.monotonic()
        each = np.array(score.per_example) * score.dimensions
        result: dict[str, Any] = {"kind": score.kind, "bits_per_row": each, **self.fidelity(new)}
        asked, broken = MeasureRows(None), read_rows(spec, self.broken).known
        if model.conditional is not None:
            began = time.monotonic()
            result["imputed"] = self.is_right(fill_rows(model, spec, FillRows(self.holed))[0])
            seconds["fill"], began = time.monotonic() - began, time.monotonic()
            cells = suspicious_cells(model, spec, broken, asked)
            named = self.is_broken[np.arange(len(broken)), cells.log_odds.argmax(dim=1).numpy()]
            seconds["cells"] = time.monotonic() - began
            result |= {"named": named, "named_by_chance": self.is_broken.mean()}
        if model.is_exact:
            bits = np.concatenate([row_bits(model, spec, part, asked).numpy() for part in (rows.known, broken)])
            result["outlier_auc"] = self.outlier_auc(bits)
        return {**result, "seconds": {name: round(value, 1) for name, value in seconds.items()}}

    def scikit(self, name: str) -> dict[str, Any]:
        """Return the figures of baselines of scikit-learn."""
        began, train = time.monotonic(), self.coded(self.train)
        if name == "isolation forest":
            forest = IsolationForest(random_state=0, n_jobs=-1).fit(self.one_hot(train))
            both = np.concatenate([self.coded(part) for part in (self.test, self.broken)])
            return {"outlier_auc": self.outlier_auc(-forest.score_samples(self.one_hot(both)))}
        filled, holed = self.test.copy(), np.where(self.is_hole, -1, self.coded(self.test))
        for place, column in enumerate(self.codes):
            values, gaps = list(self.codes[column]), self.is_hole[:, place]
            if name == "most frequent" or len(values) < 2:
                found = np.full(gaps.sum(), np.bincount(train[:, place]).argmax())
            else:
                others = [c for c in range(train.shape[1]) if c != place]
                hidden = np.where(np.random.default_rng(place).random(train.shape) < SHARE_REMOVED, -1, train)
                model = RandomForestClassifier(
                    100, min_samples_leaf=2, n_jobs=-1, random_state=0, max_samples=min(LARGEST_FOREST, len(train))
                ).fit(hidden[:, others], train[:, place])
                found = model.predict(holed[gaps][:, others])
            filled.loc[gaps, column] = np.array(values, object)[found]
        return {"imputed": self.is_right(filled), "seconds": {"fill": round(time.monotonic() - began, 1)}}

    def theirs(self, folder: Path, name: str) -> dict[str, Any]:
        """Return the figures of another contestant from the files that it left."""

        def read(what: str) -> pd.DataFrame:
            return pd.read_csv(folder / f"{name}-{what}.csv", dtype=str, keep_default_na=False).replace("", None)

        seconds = json.loads((folder / f"{name}-times.json").read_text())
        result: dict[str, Any] = {"seconds": {key: round(value, 1) for key, value in seconds.items()}}
        if (folder / f"{name}-bits.csv").exists():
            result["bits_per_row"] = pd.read_csv(folder / f"{name}-bits.csv")["bits"].to_numpy()
        if (folder / f"{name}-new.csv").exists():
            result |= self.fidelity(read("new"))
        if (folder / f"{name}-filled.csv").exists():
            result["imputed"] = self.is_right(read("filled"))
        if (folder / f"{name}-scores.csv").exists():
            result["outlier_auc"] = self.outlier_auc(pd.read_csv(folder / f"{name}-scores.csv")["score"].to_numpy())
        return result


if __name__ == "__main__":
    main()
