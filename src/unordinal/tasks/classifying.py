"""Find the label of examples by Bayes' rule: P(label | x) is in proportion to P(x | label) P(label)."""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from unordinal.data.spec import DataSpec, Label
from unordinal.data.splits import Split
from unordinal.model import CategoricalModel, device_of
from unordinal.models.bound import bound
from unordinal.names import check_known
from unordinal.parallel.randomness import generator_of
from unordinal.settings import BatchSize, Flag, Range, Request, Seed


@dataclass(frozen=True)
class Classify(Request):
    """Find the label of examples: the probability of each of its values."""

    data: Annotated[Any, Flag(metavar="DATA")] = None
    """The examples: a path, or in Python also texts or classes; default the test split of the run's own data."""
    name: str | None = None
    """Which label, if the model has several."""
    label: Annotated[tuple[str, ...] | Any, Flag(metavar="NAME=VALUE")] = ()
    """Other labels that all examples have, such as colour=green; those that are not given are missing."""
    split: Literal["train", "val", "test"] | None = None
    """Part of the data; default test, or all of other data that have no split of their own."""
    repeats: Annotated[int, Range(2)] = 16
    """Draws of a bound per example; the draws are the same for every value. Exact models need none."""
    num_examples: Annotated[int | None, Range(1)] = None
    """Only the first N examples."""
    batch_size: BatchSize = 32
    """Examples per network call."""
    seed: Seed = 0
    """Seed of a bound's draws."""


@dataclass(frozen=True)
class Classified:
    """The probabilities of the values of a label.

    Args:
        label: the label.
        probabilities: that of each value for each example, (N, V) float64.
        error: the standard error of the log-odds of the two likeliest values, (N,); None for exact models.
        truth: the values that the examples have, (N,), V where they are missing; None if the data have no labels.
        kind: "exact", or "bounds compared" for models that have only a bound of P(x | label).
    """

    label: Label
    probabilities: Tensor
    error: Tensor | None
    truth: Tensor | None
    kind: str

    @property
    def values(self) -> list[str]:
        """The likeliest value for each example."""
        return [self.label.values[k] for k in self.probabilities.argmax(dim=1).tolist()]

    @property
    def accuracy(self) -> float | None:
        """The share of the examples with a label whose likeliest value is theirs; None if none has one."""
        if self.truth is None or not bool((has := self.truth < len(self.label.values)).any()):
            return None
        return float((self.probabilities.argmax(dim=1) == self.truth)[has].double().mean())


def classify(model: CategoricalModel, spec: DataSpec, split: Split, asked: Classify) -> Classified:
    """Return the probabilities of the values of a label for the examples of a split.

    The frequencies of the values in the training data, with one more of each, are P(label). Exact models give exact
    probabilities. For others, bounds of P(x | label) are compared, whose gaps may differ between the values.
    """
    place = place_of_label(spec, asked)
    label, num = spec.labels[place], min(len(split), asked.num_examples or len(split))
    if not num:
        raise ValueError("there are no examples to classify")
    cond = torch.tensor(spec.encode_labels(asked.label) or spec.label_sizes)
    values, errors = [], []
    with asked.progress("Classifying", num * len(label.values)) as advance:
        for number, start in enumerate(range(0, num, asked.batch_size)):
            rows = np.arange(start, min(start + asked.batch_size, num))
            x = model.trimmed(split.examples(rows)).to(device_of(model))
            found = []
            for value in range(len(label.values)):
                given = cond.repeat(len(x), 1)
                given[:, place] = value
                generator = generator_of(asked.seed, number, device=x.device)  # the same for every value
                draws = 1 if model.is_exact else asked.repeats
                found.append(bound(model, x, cond=given.to(x.device), draws=draws, generator=generator))
                advance(len(x))
            log_p = torch.stack(found, dim=-1) + label.log_frequencies()  # (draws, B, V)
            values.append(torch.softmax(log_p.mean(dim=0), dim=-1))
            errors.append(log_odds_error(log_p))
    truth = None if split.labels is None else torch.from_numpy(np.asarray(split.labels[:num, place]).astype(np.int64))
    exact = model.is_exact
    return Classified(
        label, torch.cat(values), None if exact else torch.cat(errors), truth, "exact" if exact else "bounds compared"
    )


def place_of_label(spec: DataSpec, asked: Classify) -> int:
    """Return the place of the label that the user asks for; raise a ValueError if the model lacks it."""
    names = [label.name for label in spec.labels]
    if not names:
        raise ValueError(f"`classify` is for models that were trained with labels; {spec.name} has none")
    if asked.name is None and len(names) > 1:
        raise ValueError(f"which label? give its `name`: {', '.join(names)}")
    check_known("label", asked.name or names[0], names)
    return names.index(asked.name or names[0])


def log_odds_error(log_p: Tensor) -> Tensor:
    """Return the standard error of the difference of the two largest values, from draws (draws, B, V): (B,)."""
    if log_p.shape[-1] < 2:
        return torch.zeros(log_p.shape[1])
    best = log_p.mean(dim=0).topk(2, dim=-1).indices  # (B, 2)
    pair = log_p.gather(-1, best.expand(len(log_p), -1, -1))
    return (pair[..., 0] - pair[..., 1]).std(dim=0, correction=0) / math.sqrt(max(1, len(log_p) - 1))
