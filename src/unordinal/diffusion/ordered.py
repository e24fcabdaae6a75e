"""Samplers of masked positions whose likelihood is known: what they show next depends on nothing but what is shown."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import NoiseProcess
from unordinal.diffusion.unmasking import TIE, HighestConfidence, LowestEntropy, Unmasking
from unordinal.names import check_known
from unordinal.numerics import Rng

Ranking = Literal["left-to-right", "confidence", "entropy", "margin"]
"""What decides which positions are shown next: their place, the probability of the likeliest class, the entropy, or how
far the likeliest class is ahead of the second one."""
BUDGET = 0.5  # nats of a call of the sampler entropy-bounded, by default
MOST_ENTROPY = 1e9  # of a position, in units of TIE: it stands for positions that are shown already


@dataclass(frozen=True)
class Ordered(Unmasking):
    """Show the positions that come first in a ranking; among equal ones, those with the lowest number.

    The ranking reads each position's whole distribution at temperature 1, and never the class that is drawn. What is
    shown next is therefore a function of what is shown already, and the product of the probabilities of the classes
    that are drawn is the exact likelihood of this sampler, for any number of positions per call. It is another
    distribution than that of the bound.

    Args:
        steps: the number of network calls; None for one position per call.
        ranking: what decides which positions are shown next.
        budget: show as many positions in a call as this budget allows, for the ranking entropy: the entropies of their
            predictions, without the largest, sum to at most this many nats. `steps` is then the most calls, and None
            sets no limit. What a call loses by drawing its positions independently is at most the budget.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> x = model.sample(2, sampler=Ordered(3))
    >>> model.log_prob_of_sampler(x, Ordered(3)).shape
    torch.Size([2])
    """

    ranking: Ranking = "margin"
    budget: float | None = None

    def __post_init__(self) -> None:
        check_known("ranking", self.ranking, get_args(Ranking))
        if self.budget is None:
            return
        if self.ranking != "entropy":
            raise ValueError(f"`budget` is for the ranking entropy, not {self.ranking}")
        if not 0 <= self.budget < math.inf:
            raise ValueError(f"`budget` must be a number of nats of at least 0, got {self.budget:g}")

    def urgency(self, logits: Tensor) -> Tensor:
        if self.ranking == "entropy":
            return LowestEntropy.urgency(LowestEntropy(), logits)
        if self.ranking == "confidence":
            return HighestConfidence.urgency(HighestConfidence(), logits)
        if self.ranking == "margin":
            first, *rest = torch.softmax(logits, dim=-1).topk(min(2, logits.shape[-1]), dim=-1).values.unbind(-1)
            return first - rest[0] if rest else first
        return torch.zeros(logits.shape[:-1], device=logits.device)

    def shown_next(self, urgency: Tensor, is_masked: Tensor, num: Tensor, generator: Rng) -> Tensor:
        rounded = (urgency.double() / TIE).round().masked_fill(~is_masked, -math.inf).flatten(1)
        order = rounded.argsort(dim=1, descending=True, stable=True)
        is_shown = order.argsort(dim=1) < num.unsqueeze(1)
        if self.budget is not None:  # the sum without the largest is that of the positions that come before
            entropy = -rounded.gather(1, order).clamp(min=-MOST_ENTROPY)
            before = entropy.cumsum(dim=1) - entropy
            is_shown |= (before * TIE <= self.budget).gather(1, order.argsort(dim=1))
        return is_shown.view_as(is_masked) & is_masked

    def followed(
        self,
        predict: Predictor,
        noise: NoiseProcess,
        x: Tensor,
        known: Tensor | None = None,
        forced: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> Iterator[Tensor]:
        """Yield after each call the log-probability (N,) of the classes of x (N, *D) that it shows.

        Args:
            predict: the predictions, at temperature 1.
            noise: noise with a mask.
            x: the classes.
            known: classes of positions that are given, and -1 elsewhere; they are not counted.
            forced: returns from x and the positions that a call shows which of these follow from the others, and so
                are not counted either.
        """
        found = torch.zeros(len(x), device=x.device)

        def revealed(logits: Tensor, is_shown: Tensor) -> Tensor:
            nonlocal found
            log_p = noise.classes.log_prob(logits, noise.inside(x))  # (N, *D)
            counts = is_shown if forced is None else is_shown & ~forced(x, is_shown)
            found = torch.where(counts, log_p, 0.0).flatten(1).sum(dim=1)
            return x[is_shown]

        start = torch.full_like(x, noise.mask or 0)
        for number, _ in enumerate(self.shown(predict, noise, start, revealed, known=known)):
            if number:  # the first one is where the chain begins
                yield found


@dataclass(frozen=True)
class EntropyBounded(Ordered):
    """Show as many positions in a call as a budget of entropy allows, the surest first; see `Ordered`.

    Args:
        steps: the most network calls; None for no limit.
        ranking: entropy.
        budget: the nats that the entropies of the positions of a call, without the largest, may sum to.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=EntropyBounded(budget=0.1)).shape
    torch.Size([2, 6])
    """

    ranking: Ranking = "entropy"
    budget: float | None = BUDGET
