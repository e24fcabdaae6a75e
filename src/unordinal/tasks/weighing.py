"""Weigh what may have been meant at some places of a typed text, under a channel of errors and one or two models."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from unordinal.data.vocabularies import Vocabulary
from unordinal.model import CategoricalModel, device_of
from unordinal.tasks.channel import NO_LETTER, Channel
from unordinal.tasks.reading import read

JUDGE_WEIGHT = 0.7  # of the judge's log-probabilities in the mean of both models'
AROUND = 4  # typed letters on both sides of a place between which the channel's alignments are summed
ROUNDS = 2  # in the second, each place is weighed with the likeliest readings of the other places around it
UNLIKELY = 1e-4  # the share below which a reading is not weighed again
AT_ONCE = 64  # texts that are scored at a time

Letters = tuple[int, ...]
"""The classes that may have been meant at a place."""


@dataclass(frozen=True)
class Place:
    """A place of a typed text, and what may have been meant there.

    Args:
        typed: the positions of the typed text.
        readings: what may have been meant, the likeliest so far first.
    """

    typed: slice
    readings: tuple[Letters, ...]


@dataclass(frozen=True)
class Judge:
    """A second model of text, with any alphabet."""

    model: CategoricalModel
    vocabulary: Vocabulary

    def log_probs(self, texts: list[str]) -> Tensor:
        """Return the log-probabilities of texts, (N,) in float64."""
        return log_priors(self.model, [read(text, self.vocabulary).x for text in texts])


@dataclass(frozen=True)
class Scale:
    """What readings are weighed with.

    Args:
        model: an autoregressive model of clean texts.
        channel: how errors are made.
        vocabulary: the alphabet of both.
        judge: a second model, whose log-probabilities are averaged with those of the first; None for none.
    """

    model: CategoricalModel
    channel: Channel
    vocabulary: Vocabulary
    judge: Judge | None = None

    def log_priors(self, texts: list[Tensor]) -> Tensor:
        """Return the log-probabilities of clean texts, each (L,); the mean of both models' is not normalised."""
        own = log_priors(self.model, texts)
        if self.judge is None:
            return own
        second = self.judge.log_probs([self.vocabulary.decode(text) for text in texts])
        return JUDGE_WEIGHT * second + (1 - JUDGE_WEIGHT) * own

    def log_channel(self, typed: Tensor, is_fixed: Tensor, place: Place) -> Tensor:
        """Return the log-probabilities (R,) that what was meant at a place was typed as it is, near the place."""
        start, stop = max(0, place.typed.start - AROUND), place.typed.stop + AROUND
        before, after = typed[start : place.typed.start], typed[place.typed.stop : stop]
        clean = padded([torch.cat([before, torch.tensor(r, dtype=torch.long), after]) for r in place.readings])
        near = (v[start:stop].expand(len(clean), -1) for v in (typed, is_fixed))
        return self.channel.log_prob(next(near), clean, next(near))

    def weigh(self, typed: Tensor, is_fixed: Tensor, places: Sequence[Place]) -> list[dict[Letters, float]]:
        """Return the probabilities of the readings of each place, given the likeliest ones of the other places.

        Args:
            typed: the classes of a typed text, (M,).
            is_fixed: positions (M,) that are known to be right.
            places: the places, in the order of the text.
        """
        costs = [
            dict(zip(place.readings, self.log_channel(typed, is_fixed, place).tolist(), strict=True))
            for place in places
        ]
        chosen, shares = [place.readings[0] for place in places], [dict.fromkeys(known, 1.0) for known in costs]
        for _ in range(ROUNDS):
            texts, asked = [assembled(typed, places, chosen)], list[tuple[int, Letters]]()
            for index, known in enumerate(shares):
                for reading in (r for r, share in known.items() if r != chosen[index] and share >= UNLIKELY):
                    there = [*chosen[:index], reading, *chosen[index + 1 :]]
                    texts.append(assembled(typed, places, there))
                    asked.append((index, reading))
            base, *others = self.log_priors(texts).tolist()
            for index, cost in enumerate(costs):
                scores = {chosen[index]: base + cost[chosen[index]]}
                scores |= {r: p + cost[r] for (i, r), p in zip(asked, others, strict=True) if i == index}
                weights = torch.softmax(torch.tensor(list(scores.values()), dtype=torch.float64), dim=0)
                shares[index] = dict(zip(scores, weights.tolist(), strict=True))
            before, chosen = chosen, [max(known, key=known.__getitem__) for known in shares]
            if chosen == before:
                break
        return shares


def assembled(typed: Tensor, places: Sequence[Place], readings: Sequence[Letters]) -> Tensor:
    """Return a typed text with readings in their places.

    >>> assembled(torch.tensor([5, 6, 7]), [Place(slice(1, 2), ())], [(8, 9)])
    tensor([5, 8, 9, 7])
    """
    parts, done = [], 0
    for place, reading in zip(places, readings, strict=True):
        parts += [typed[done : place.typed.start], torch.tensor(reading, dtype=torch.long)]
        done = place.typed.stop
    return torch.cat([*parts, typed[done:]])


@torch.no_grad()
def log_priors(model: CategoricalModel, texts: list[Tensor]) -> Tensor:
    """Return the log-probabilities of texts under an autoregressive model, (N,) in float64."""
    assert model.stepper is not None
    found = []
    for begin in range(0, len(texts), AT_ONCE):
        some = texts[begin : begin + AT_ONCE]
        x = padded(some, model.num_classes if model.ends else 0)
        log_p = model.stepper.log_probs(x.to(device_of(model))).double().cpu()
        sizes = torch.tensor([len(text) + model.ends for text in some]).unsqueeze(1)
        found.append(torch.where(torch.arange(log_p.shape[1]) < sizes, log_p, 0.0).sum(dim=1))
    return torch.cat(found)


def padded(texts: list[Tensor], value: int = NO_LETTER) -> Tensor:
    """Return texts of different lengths as one tensor, with a value after the end of shorter ones."""
    return torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=value)
