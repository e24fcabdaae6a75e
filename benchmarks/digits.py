"""Classify handwritten digits by Bayes' rule with a generative model, against logistic regression on the same pixels.

python benchmarks/digits.py --data digits8x8.npz --minutes 3
"""

import argparse
import json

import numpy as np
from sklearn.linear_model import LogisticRegression

from unordinal.api import fit
from unordinal.data.labels import SPLITS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="an .npz with train, val, test and their labels train_label, ...")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--models", nargs="*", default=["arm", "absorbing"])
    args = parser.parse_args()
    read = dict(np.load(args.data))
    parts = {name: read[name].reshape(len(read[name]), -1) for name in SPLITS}  # every pixel is a place
    parts |= {f"{name}_label": read[f"{name}_label"] for name in SPLITS}
    linear = LogisticRegression(max_iter=5000, C=0.05).fit(parts["train"], parts["train_label"])
    accuracy = float((linear.predict(parts["test"]) == parts["test_label"]).mean())
    told(model="logistic regression", accuracy=accuracy, num=len(parts["test"]), score="")
    for name in args.models:
        run = fit(name, parts, minutes=args.minutes, progress=False)
        told(model=name, accuracy=run.classify().accuracy or 0.0, num=len(parts["test"]), score=str(run.score()))


def told(*, model: str, accuracy: float, num: int, score: str) -> None:
    """Print the accuracy of a model with its standard error."""
    error = round(float(np.sqrt(accuracy * (1 - accuracy) / num)), 4)
    print(json.dumps({"model": model, "accuracy": round(accuracy, 4), "error": error, "score": score}), flush=True)


if __name__ == "__main__":
    main()
