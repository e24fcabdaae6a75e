"""One contestant of tables_race.py, run by the Python of another environment: NAME FOLDER MINUTES.

Reads train.csv, test.csv, holed.csv and broken.csv from FOLDER. Writes NAME-times.json and, where it can, NAME-new.csv
(as many rows as train.csv), NAME-bits.csv (bits of each test row), NAME-filled.csv and NAME-scores.csv (outlier scores
of the test rows, then of the broken rows).
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

NAME, FOLDER, MINUTES = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])


def read(name: str) -> Any:
    return pd.read_csv(FOLDER / f"{name}.csv", dtype=str, keep_default_na=False).replace("", None)


def main() -> None:
    train, test, holed, broken = (read(name) for name in ("train", "test", "holed", "broken"))
    times: dict[str, float] = {}
    began = time.monotonic()

    def lap(name: str) -> None:
        nonlocal began
        times[name], began = time.monotonic() - began, time.monotonic()

    if NAME.startswith("mostlyai"):
        import numpy as np
        from mostlyai.engine import TabularARGN

        types, is_any = dict.fromkeys(train, "TABULAR_CATEGORICAL"), NAME.endswith("any")
        given: Any = {"value_protection": False, "enable_flexible_generation": is_any, "tgt_encoding_types": types}
        model = TabularARGN(max_training_time=MINUTES, random_state=0, **given)
        model.fit(train)
        lap("fit")
        bits = -np.asarray(model.log_prob(test), dtype=float) / np.log(2)
        pd.DataFrame({"bits": bits}).to_csv(FOLDER / f"{NAME}-bits.csv", index=False)
        lap("score")
        model.sample(len(train)).to_csv(FOLDER / f"{NAME}-new.csv", index=False)
        lap("sample")
        if NAME.endswith("any"):
            model.impute(holed, sampling_temperature=0.0).to_csv(FOLDER / f"{NAME}-filled.csv", index=False)
            lap("fill")
            both = pd.concat([test, broken])
            scores = -np.asarray(model.log_prob(both), dtype=float)
            pd.DataFrame({"score": scores}).to_csv(FOLDER / f"{NAME}-scores.csv", index=False)
    elif NAME == "ecod":
        from pyod.models.ecod import ECOD

        every = pd.get_dummies(pd.concat([train, test, broken]).fillna("(missing)")).to_numpy(float)
        detector = ECOD()
        detector.fit(every[: len(train)])
        scores = detector.decision_function(every[len(train) :])
        pd.DataFrame({"score": scores}).to_csv(FOLDER / f"{NAME}-scores.csv", index=False)
        lap("fit")
    else:
        from ctgan import CTGAN

        train, seconds = train.fillna("(missing)"), []
        for epochs in (1, 3):  # how long an epoch takes, without the preparations
            began = time.monotonic()
            CTGAN(epochs=epochs, enable_gpu=False).fit(train, tuple(train.columns))
            seconds.append(time.monotonic() - began)
        each = max(0.01, (seconds[1] - seconds[0]) / 2)
        began = time.monotonic()
        model = CTGAN(epochs=max(1, round((60 * MINUTES - seconds[0]) / each)), enable_gpu=False)
        model.fit(train, tuple(train.columns))
        lap("fit")
        model.sample(len(train)).replace("(missing)", None).to_csv(FOLDER / f"{NAME}-new.csv", index=False)
        lap("sample")
    (FOLDER / f"{NAME}-times.json").write_text(json.dumps(times))


main()
