"""Samplers for noise with a mask, which show a number of positions with every network call."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.diffusion.choosing import far_apart
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import NoiseProcess, Time
from unordinal.numerics import Rng, expand_like, uniform
from unordinal.progress import current_watcher

Reveal = Callable[[Tensor, Tensor], Tensor]
"""Returns the classes (J,) of the positions that are shown, from logits (N, *D, K) and booleans (N, *D)."""
TIE = 1e-5  # positions whose urgency differs by less than about this are shown in random order


@dataclass(frozen=True)
class Unmasking:
    """Samplers for noise with a mask that show a number of positions with every network call.

    Args:
        steps: the number of network calls; None for one position per call.
    """

    steps: int | None = None

    @staticmethod
    def whole_calls(_noise: NoiseProcess, num_free: int) -> int | None:
        """Return the calls that show one position at a time."""
        return num_free

    def urgency(self, logits: Tensor) -> Tensor:
        """Return how soon each position is to be shown, from the network's own logits, whatever the temperature.

        The shape is (N, *D), from logits of shape (N, *D, K); by default all positions are alike.
        """
        return torch.zeros(logits.shape[:-1], device=logits.device)

    def shown_next(self, urgency: Tensor, is_masked: Tensor, num: Tensor, generator: Rng) -> Tensor:
        """Return which of the masked positions to show, `num` (N,) of them in each sample: (N, *D) booleans."""
        return most_urgent(urgency, is_masked, num, generator)

    def chain(
        self, predict: Predictor, noise: NoiseProcess, z: Tensor, *, known: Tensor | None = None, generator: Rng = None
    ) -> Iterator[tuple[Time, Tensor]]:
        def drawn(logits: Tensor, is_shown: Tensor) -> Tensor:
            return noise.classes.draw_at(logits, is_shown, generator)

        return self.shown(predict, noise, z, drawn, known=known, generator=generator)

    def shown(
        self,
        predict: Predictor,
        noise: NoiseProcess,
        z: Tensor,
        reveal: Reveal,
        *,
        known: Tensor | None = None,
        generator: Rng = None,
    ) -> Iterator[tuple[Time, Tensor]]:
        """Show positions call by call; `reveal` decides which classes they have."""
        if noise.mask is None:
            raise ValueError("this sampler shows masked positions, and the noise of this model has no mask")
        z = noise.impose(z, known, 1.0, generator=generator)
        most = int((z == noise.mask).flatten(1).sum(dim=1).max())
        calls = most if self.steps is None else self.steps
        if noise.pad is not None:  # how long samples are is drawn, so that no number of calls fits all of them
            calls = min(calls, most)
        elif not 1 <= calls <= most:
            raise ValueError(f"`steps` must be between 1 and {most}, one for each free position; got {calls}")
        watcher, end, free = current_watcher(), noise.num_steps or 1, max(1, int((z == noise.mask).sum()))
        size = noise.total(torch.ones(z.shape, device=z.device), z).clamp(min=1)  # (N,)
        watcher.state(end, z)
        yield end, z
        asked = z
        for call in range(calls):
            is_masked = z == noise.mask
            left = is_masked.flatten(1).sum(dim=1)  # (N,)
            if not bool(left.any()):  # the sampler shows as many as it likes
                break
            level = noise.schedule.time_of(left / size)
            asked = torch.where(expand_like(left > 0, z), z, asked)  # samples that are finished ask nothing more
            logits = predict(asked, level, float((left / size).max()))
            num = (left // (calls - call)).clamp(min=1)  # rather one more at the end, when more is known
            urgency = noise.classes.reduce(self.urgency, predict.logits)
            is_shown = self.shown_next(urgency, is_masked, num, generator)
            z = z.clone()
            z[is_shown] = reveal(logits, is_shown)
            watcher.advance(len(z) * int(is_shown.sum()) / free)
            t = end * float(((z == noise.mask).flatten(1).sum(dim=1) / size).max())
            watcher.state(t, z)
            yield t, z


def most_urgent(urgency: Tensor, is_masked: Tensor, num: Tensor, generator: Rng) -> Tensor:
    """Return the masked positions with the largest numbers, `num` (N,) of them in each sample: (N, *D) booleans.

    Positions whose numbers differ by rounding only come in random order.
    """
    flat = (urgency / TIE).round().masked_fill(~is_masked, -math.inf).flatten(1)
    shuffled = uniform(flat.shape, flat.device, generator).argsort(dim=1)
    order = shuffled.gather(1, flat.gather(1, shuffled).argsort(dim=1, descending=True, stable=True))
    rank = order.argsort(dim=1)
    return (rank < num.unsqueeze(1)).view_as(is_masked) & is_masked


@dataclass(frozen=True)
class FirstHitting(Unmasking):
    """Show positions in random order. With one position per call it draws from the model exactly, if the network does
    not read the time; otherwise the time that belongs to a number of masks is an approximation.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=FirstHitting()).shape
    torch.Size([2, 6])
    """


@dataclass(frozen=True)
class SpreadUnmasking(Unmasking):
    """Show positions in random order, those of one call far apart from each other; see `Spread`.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=SpreadUnmasking(3)).shape
    torch.Size([2, 6])
    """

    def shown_next(self, urgency: Tensor, is_masked: Tensor, num: Tensor, generator: Rng) -> Tensor:
        left = is_masked.flatten(1).sum(dim=1).clamp(min=1)
        return far_apart(is_masked * expand_like(num / left, is_masked), generator) & is_masked


@dataclass(frozen=True)
class LowestEntropy(Unmasking):
    """Show the positions of which the network is surest, by the entropy of its prediction. An approximation.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=LowestEntropy(3)).shape
    torch.Size([2, 6])
    """

    def urgency(self, logits: Tensor) -> Tensor:
        log_p = torch.log_softmax(logits, dim=-1)
        return (log_p.exp() * log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(dim=-1)


@dataclass(frozen=True)
class HighestConfidence(Unmasking):
    """Show the positions whose likeliest class is the most probable. An approximation.

    >>> from unordinal import AbsorbingNoise, DenoisingTransformer, Diffusion
    >>> net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    >>> model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    >>> model.sample(2, sampler=HighestConfidence(3)).shape
    torch.Size([2, 6])
    """

    def urgency(self, logits: Tensor) -> Tensor:
        return torch.log_softmax(logits, dim=-1).amax(dim=-1)
