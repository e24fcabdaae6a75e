"""What a report shows of a trained model: samples, the chain of one, corrected text, maps, probabilities."""

import math
from typing import Any

import numpy as np
import torch

from unordinal.data import Data
from unordinal.evaluate.likelihood import Evaluate
from unordinal.evaluate.report import chain_rows, shown_time
from unordinal.parallel.randomness import generator_of
from unordinal.run import Run
from unordinal.tasks.asking import Sample
from unordinal.tasks.correcting import Correct
from unordinal.tasks.drawing import sample

TEXTS, MAPS, CALLS, TOY_SAMPLES = 3, 8, 200, 2000
CHAIN_ROWS = 10
ERROR_RATE, MISTYPED_LENGTH = 0.05, 128  # of the text that is corrected
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"  # of the classes of a map


def shown_of(run: Run, data: Data) -> dict[str, Any]:
    """Return what is shown of a run, as plain values."""
    if data.pmf is not None:
        return {"probabilities": probabilities(run, data)}
    denoiser = run.model.denoiser
    asked: dict[str, Any] = {"num": MAPS if run.spec.is_map else TEXTS}
    if denoiser is not None:
        whole = denoiser.whole_calls(None, run.model.event_shape.numel())
        asked["steps"] = CALLS if whole is None else min(CALLS, whole)
    drawn = sample(run.model, run.spec, Sample(**asked), with_chain=denoiser is not None)
    if run.spec.is_map:
        return {"maps": [in_digits(x) for x in drawn.x.numpy()], "calls": drawn.network_calls}
    found: dict[str, Any] = {"samples": [run.spec.show(x) for x in drawn.x], "calls": drawn.network_calls}
    if drawn.chain:
        rows = chain_rows(drawn.chain, CHAIN_ROWS)
        found["chain"] = [[shown_time(t), run.spec.show_noisy(x)] for t, x in rows]
    if denoiser is not None and denoiser.posterior is not None:
        found["spelling"] = spelling(run, data)
    return found


def in_digits(x: np.ndarray) -> list[str]:
    """Return a map as a text for each of its rows, a digit for each class; ? is an invalid code."""
    return ["".join(DIGITS[k] if k < len(DIGITS) else "?" for k in row) for row in x.tolist()]


def of_digits(rows: list[str]) -> np.ndarray:
    """Return the map whose rows are texts; invalid codes become a class above all others.

    >>> of_digits(["01", "2?"]).tolist()
    [[0, 1], [2, 36]]
    """
    return np.array([[DIGITS.find(letter) % (len(DIGITS) + 1) for letter in row] for row in rows])


def spelling(run: Run, data: Data) -> dict[str, Any]:
    """Return a text of the test split, the same with mistyped letters, and its correction in a single pass."""
    x = torch.as_tensor(data.test[0]).reshape(-1)[:MISTYPED_LENGTH].long()
    generator, num = generator_of(0), run.spec.num_classes
    is_wrong = torch.rand(x.shape, generator=generator) < ERROR_RATE
    other = (x + torch.randint(1, num, x.shape, generator=generator)) % num
    typed = torch.where(is_wrong, other, x)
    truth, mistyped = run.spec.show(x), run.spec.show(typed)
    found = run.corrected(Correct(mistyped, method="pass", error_rate=ERROR_RATE)).text
    return {"truth": truth, "typed": mistyped, "corrected": found}


def probabilities(run: Run, data: Data) -> dict[str, Any]:
    """Return the probabilities of the data, of the model and of samples, each as parts of the largest one."""
    assert data.pmf is not None
    score = run.scored(Evaluate(split="exact"), data)
    assert score.per_example is not None
    model = np.exp(-np.array(score.per_example) * math.log(2) * score.dimensions).reshape(data.pmf.shape)
    x = sample(run.model, run.spec, Sample(TOY_SAMPLES)).x
    inside, counts = x[(x < len(data.pmf)).all(dim=1)].numpy(), np.zeros_like(data.pmf)
    np.add.at(counts, tuple(inside.T), 1 / TOY_SAMPLES)
    named = {"data": data.pmf, "model": model, "samples": counts}
    return {
        name: (1000 * values / max(float(values.max()), 1e-12)).round().astype(int).tolist()
        for name, values in named.items()
    }
