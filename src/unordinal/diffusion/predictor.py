"""The predictions of a network while samples are drawn."""

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from unordinal.columns import Classes
from unordinal.numerics import sharpened, tempered
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
        dropped: the labels (J,) that stand for dropped ones.
        guidance: how much labels count, g: 1 is the network given its labels, and 0 the one without.
        mixes: whether to return the predictions p(x_0)^(1-g) p(x_0 | y)^g of each position, normalised, which is right
            for noise with a mask. Otherwise the predictions given the labels are returned, and `free` has those
            without, for a process that mixes p(x_s | x_t).

    Attributes:
        logits: the network's own logits of the last call, before they were sharpened.
        free: those of the last call without labels, unless they are mixed already; None without guidance.
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
        dropped: Tensor | None = None,
        guidance: float = 1.0,
        mixes: bool = True,
    ):
        if not 0 <= temperature < math.inf:
            raise ValueError(f"the temperature must be a number of at least 0, got {temperature:g}")
        if not 0 < top_p <= 1:
            raise ValueError(f"`top_p` must be above 0 and at most 1, got {top_p:g}")
        if not 0 <= greedy_tail <= 1:
            raise ValueError(f"`greedy_tail` must be between 0 and 1, got {greedy_tail:g}")
        self.predict, self.classes, self.cond, self.reads_time = predict, classes or Classes(2), cond, reads_time
        self.temperature, self.top_p, self.greedy_tail = temperature, top_p, greedy_tail
        self.dropped, self.guidance, self.mixes = dropped, guidance, mixes
        self.free: Tensor | None = None
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
        current_watcher().network_calls += int(changed.sum()) * (1 if self.dropped is None else 2)
        temperature = 0.0 if fraction <= self.greedy_tail else self.temperature
        return self.classes.map(lambda logits: sharpened(logits, temperature, self.top_p), self.logits)

    def predicted(self, z: Tensor, t: Tensor, which: Tensor) -> Tensor:
        """Return the network's logits of some samples, `which` (N,) is true."""
        if self.cond is None:
            return self.predict(z, t)
        own = self.predict(z, t, self.cond[which])
        if self.dropped is None:
            return own
        free = self.predict(z, t, self.dropped.expand(len(z), -1))
        if self.mixes:
            normalised = partial(torch.log_softmax, dim=-1)
            log_free, log_own = (self.classes.map(normalised, part) for part in (free, own))
            return tempered(log_free, log_own, self.guidance)
        self.free = free
        return own
