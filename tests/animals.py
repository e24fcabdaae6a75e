"""A small table whose distribution can be enumerated, for tests of tables."""

import itertools

import numpy as np
import pandas as pd
import torch

from unordinal.api import Run


def animals(num: int = 500) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = rng.choice(["frog", "toad", "newt"], num)
    colour = np.where(rng.random(num) < 0.9, np.where(kind == "frog", "green", "brown"), "red")
    legs = pd.Series(rng.choice([3, 4], num, p=[0.1, 0.9])).astype("Int64")
    legs[rng.random(num) < 0.1] = pd.NA
    return pd.DataFrame({"kind": kind, "colour": colour, "legs": legs})


def enumerated(run: Run) -> tuple[torch.Tensor, torch.Tensor]:
    events = torch.tensor(list(itertools.product(*(range(len(column.classes)) for column in run.spec.schema))))
    return events, run.model.elbo(events).double().exp()
