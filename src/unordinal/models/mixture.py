"""The mean of several autoregressive models of rows, half of which read the rows in reverse."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.checks import sample_shape
from unordinal.model import ExactModel
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.places import PlaceHeads
from unordinal.numerics import Rng, uniform


class MixtureModel(ExactModel):
    """A mean of autoregressive models: P(x) = 1/M sum P_m(x), exactly.

    Every second member reads the places in reverse. Each row of a batch trains one member, so that a step costs as much
    as that of a single network. Averaging suits few rows, from which single networks learn much by chance.

    Args:
        members: the models; those at odd places must have their columns in reverse.

    >>> from unordinal.nets.classes import ClassTransformer
    >>> nets = [ClassTransformer(2, length=3, width=8, num_blocks=1, num_heads=1) for _ in range(2)]
    >>> model = MixtureModel([AutoregressiveModel(net, event_shape=(3,)) for net in nets])
    >>> model.sample(4).shape
    torch.Size([4, 3])
    """

    def __init__(self, members: Sequence[AutoregressiveModel]):
        first = members[0]
        super().__init__(first.classes, first.event_shape, labels=first.labels, has_places=first.has_places)
        self.members = nn.ModuleList(members)
        for part in (part for member in members[1::2] for part in member.modules()):
            if isinstance(part, PlaceHeads):
                part.is_reversed = True

    def each(self) -> list[AutoregressiveModel]:
        return [member for member in self.members if isinstance(member, AutoregressiveModel)]

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        found = [member.unchecked_log_prob(turned(x, number), cond) for number, member in enumerate(self.each())]
        return torch.stack(found).logsumexp(dim=0) - math.log(len(found))

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        losses, num = x.new_empty(len(x), dtype=torch.float32), len(self.members)
        first = int(torch.randint(num, ()))  # a part of a batch may have fewer rows than there are members
        for number, member in enumerate(self.each()):
            rows = slice((number - first) % num, None, num)
            if len(x[rows]):
                losses[rows] = member.training_loss(turned(x[rows], number), cond=None if cond is None else cond[rows])
        return losses

    @torch.no_grad()
    def sample(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        temperature: float = 1.0,
        cond: Any = None,
        **settings: Any,
    ) -> Tensor:
        """Draw samples, each from one of the members.

        Args:
            num_samples: how many, N.
            generator: the random number generator; default: torch's global one.
            event_shape: the model's own; others are refused.
            temperature: divides the logits; 0 takes the likeliest class.
            cond: labels, of shape (N, J), or (J,) for all samples.
        """
        shape = sample_shape(self, num_samples, event_shape, settings)
        device, labels = self.each()[0].net.device, self.checked_cond(cond, num_samples)
        picked = (uniform((num_samples,), device, generator) * len(self.members)).long()
        drawn = torch.empty((num_samples, *shape), dtype=torch.long, device=device)
        for number, member in enumerate(self.each()):
            rows = torch.nonzero(picked == number).flatten()
            if len(rows):
                part = None if labels is None else labels[rows]
                x = member.sample(len(rows), generator=generator, temperature=temperature, cond=part)
                drawn[rows] = turned(x, number)
        return drawn


def turned(x: Tensor, number: int) -> Tensor:
    """Return rows (B, L) as the member of this number reads them."""
    return x.flip(1) if number % 2 else x
