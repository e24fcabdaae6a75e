"""The predictions of a network while samples are drawn."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.numerics import sharpened
from unordinal.progress import current_watcher

Predict = Callable[..., Tensor]
"""A function that predicts the logits of x_0, of shape (N, *D, K), from x_t (N, *D), times t (N,) and, if there are
any, labels (N, J)."""


class Predictor:
    """The predictions of a network while samples are drawn: counted, remembered, and sharpened if asked for.

    A network that does not read the time is not run again for samples that have not changed. The calls are counted for
    every sample, and reported to the current watcher.

    Args:
        predict: the network's logits.
        classes: the classes of every position, if columns have numbers of classes of their own.
        cond: the labels (N, J) of all samples; None for none.
        reads_time: whether they depend on the time.
        temperature: divides the logits; 0 takes the likeliest class.
        top_p: keep the likeliest classes that together have at least this probability, and drop the others.
        greedy_tail: take the likeliest class from this time on, which is a fraction of the whole chain.

    Attributes:
        logits: the network's own logits of the last call, before they were sharpened.
    """

    def __init__(
        self,
        predict: Predict,
        *,
        classes: Classes | None = None,
        cond: Tensor | None = None,
        reads_time: bool = True,
        temperature: float = 1.0,
        top_p: float = 1.0,
        greedy_tail: float = 0.0,
    ):
        if not 0 <= temperature < math.inf:
            raise ValueError(f"the temperature must be a number of at least 0, got {temperature:g}")
        if not 0 < top_p <= 1:
            raise ValueError(f"`top_p` must be above 0 and at most 1, got {top_p:g}")
        if not 0 <= greedy_tail <= 1:
            raise ValueError(f"`greedy_tail` must be between 0 and 1, got {greedy_tail:g}")
        self.predict, self.classes, self.cond, self.reads_time = predict, classes or Classes(2), cond, reads_time
        self.temperature, self.top_p, self.greedy_tail = temperature, top_p, greedy_tail
        self.seen: Tensor | None = None  # the last input of the network
        self.logits = torch.empty(0)

    def __call__(self, z: Tensor, t: Tensor, fraction: float = 1.0) -> Tensor:
        """Return logits for x_t = z at times t (N,), which lie at a fraction of the whole chain."""
        if self.seen is None or self.reads_time:
            changed = torch.ones(len(z), dtype=torch.bool, device=z.device)
            self.logits = self.predicted(z, t, changed)
        else:
            changed = (z != self.seen).flatten(1).any(dim=1)
            if bool(changed.any()):
                self.logits = self.logits.clone()
                self.logits[changed] = self.predicted(z[changed], t[changed.cpu()], changed)
        self.seen = z.clone()
        current_watcher().network_calls += int(changed.sum())
        temperature = 0.0 if fraction <= self.greedy_tail else self.temperature
        return self.classes.map(lambda logits: sharpened(logits, temperature, self.top_p), self.logits)

    def predicted(self, z: Tensor, t: Tensor, which: Tensor) -> Tensor:
        """Return the network's logits of some samples, `which` (N,) is true."""
        return self.predict(z, t) if self.cond is None else self.predict(z, t, self.cond[which])
