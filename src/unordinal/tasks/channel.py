"""A model of how people mistype: letters are inserted, left out, replaced, and swapped with their neighbours.

The channel reads a clean text letter by letter. Before each letter, and at the end, it inserts up to two letters. Then
it writes the letter, or another one in its place, or leaves it out, or swaps it with the next one. It leaves out at
most two letters in a row. Where a swap or an omission is not possible, the letter is written as it is, so that the
probabilities of all typed texts sum to 1.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

MOST_DELETIONS = 2  # in a row
NO_LETTER = -1  # stands for what comes after the end of a typed text


@dataclass(frozen=True)
class Channel:
    """Probabilities of edits, over K classes.

    Args:
        insert: the probability (K + 1, K) that a letter is inserted after a clean one; the last row is for the
            beginning of the text.
        delete: the probability (K + 1, K) that a clean letter is left out after the clean letter before it; the last
            row is for the first letter.
        substitute: the probability (K, K) that another letter is written for a clean one; 0 on the diagonal.
        swap: the probability (K, K) that two neighbours are swapped; 0 on the diagonal.
    """

    insert: Tensor
    delete: Tensor
    substitute: Tensor
    swap: Tensor

    def __post_init__(self) -> None:
        k = self.num_classes
        assert self.insert.shape == self.delete.shape == (k + 1, k)
        edits = self.substitute.sum(dim=1) + self.swap.max(dim=1).values + self.delete.max(dim=0).values
        if not bool((edits < 1).all() and (self.insert.sum(dim=1) < 1).all()):
            raise ValueError("the probabilities of edits of a letter must sum to less than 1; lower `error_rate`")

    @property
    def num_classes(self) -> int:
        """The number of classes K."""
        return self.substitute.shape[0]

    def log_prob(self, typed: Tensor, clean: Tensor, is_fixed: Tensor | None = None) -> Tensor:
        """Return the log-probability (B,) of typed texts (B, M) given clean ones (B, N), summed over all alignments.

        Args:
            typed: classes; NO_LETTER after the end of a shorter text.
            clean: classes; NO_LETTER after the end of a shorter text.
            is_fixed: positions (B, M) that the channel can only have copied; None for none.

        >>> channel = substitutions(3, 0.3)
        >>> channel.log_prob(torch.tensor([[0, 1]]), torch.tensor([[0, 2]])).exp()
        tensor([0.1050], dtype=torch.float64)
        """
        rows = torch.arange(len(typed))
        paths = Paths.first(Typed(self, typed, is_fixed), rows)
        log_p = torch.full((len(typed),), -math.inf, dtype=torch.float64)
        sizes = (clean != NO_LETTER).sum(dim=1)
        for place in range(clean.shape[1] + 1):
            log_p = torch.where(sizes == place, paths.log_finished(), log_p)
            if place < clean.shape[1]:
                letters = clean[:, place].clamp(min=0)
                paths = paths.extended(letters.unsqueeze(1)).chosen(rows, torch.zeros_like(rows))
        return log_p


class Typed:
    """Typed texts (B, M), prepared for the search: the probability that the channel writes what is at each position.

    Args:
        channel: the channel.
        x: classes; NO_LETTER after the end of a shorter text.
        is_fixed: positions (B, M) that the channel can only have copied; None for none.
        band: how many numbers of typed letters are considered for a clean prefix; None for all.
    """

    def __init__(self, channel: Channel, x: Tensor, is_fixed: Tensor | None = None, band: int | None = None):
        self.channel, self.sizes = channel, (x != NO_LETTER).sum(dim=1)
        self.band = x.shape[1] + 1 if band is None else min(band, x.shape[1] + 1)
        self.last_base = x.shape[1] + 1 - self.band
        is_there, known = x != NO_LETTER, x.clamp(min=0)
        free = is_there if is_fixed is None else is_there & ~is_fixed
        self.is_free = free.double()
        self.copied = torch.nn.functional.one_hot(known, channel.num_classes).double() * is_there.unsqueeze(-1)
        self.substituted = channel.substitute.T[known] * free.unsqueeze(-1)  # (B, M, K): for each clean letter
        self.inserted = channel.insert.T[known] * free.unsqueeze(-1)  # (B, M, K + 1): after each clean letter


@dataclass
class Paths:
    """Probabilities that the channel has turned clean prefixes into prefixes of the typed texts, all alignments summed.

    They are held for the gap before the last letter of each prefix, since whether that letter could be swapped depends
    on the letter that follows.

    Args:
        typed: the typed texts.
        window: the typed text of each clean prefix, of shape (R,).
        base: the number of typed letters at which the band of each prefix begins, (R,).
        earlier: the letter before the last one, (R,); K where there is none.
        last: the last letter, (R,); K where there is none.
        before: probabilities (R, D, J) at the gap before the last letter, insertions included, by the letters that
            were left out in a row and by the number of typed letters, from `base`.
        swapped: probabilities (R, J) after the last letter, of paths that swap it with the one before it.
        scale: the logarithm (R,) of what all probabilities are divided by.
    """

    typed: Typed
    window: Tensor
    base: Tensor
    earlier: Tensor
    last: Tensor
    before: Tensor
    swapped: Tensor
    scale: Tensor

    @staticmethod
    def first(typed: Typed, window: Tensor) -> "Paths":
        """Return the paths of empty prefixes of some typed texts (R,)."""
        num, zero = len(window), torch.zeros(len(window), dtype=torch.float64)
        none = torch.full((num,), typed.channel.num_classes)
        before = torch.zeros(num, MOST_DELETIONS + 1, typed.band, dtype=torch.float64)
        swapped = torch.nn.functional.one_hot(torch.zeros_like(window), typed.band).double()
        return Paths(typed, window, torch.zeros_like(window), none, none, before, swapped, zero)

    def at(self, values: Tensor) -> Tensor:
        """Return what the typed texts have at the positions of each band: (B, M, ...) -> (R, J - 1, ...)."""
        place = self.base.unsqueeze(1) + torch.arange(self.typed.band - 1)
        return values[self.window.unsqueeze(1), place]

    def after_last(self) -> tuple[Tensor, Tensor]:
        """Return the probabilities (R, D, J) after the last letter if it cannot be swapped, and what a swap takes away.

        The second is (R, J): the probability of having copied the last letter, per probability of a swap.
        """
        channel, letter = self.typed.channel, self.last.clamp(max=self.typed.channel.num_classes - 1)
        pick = letter.view(-1, 1, 1).expand(-1, self.typed.band - 1, 1)
        same, other = (self.at(v).gather(2, pick).squeeze(2) for v in (self.typed.copied, self.typed.substituted))
        delete = channel.delete[self.earlier, letter].unsqueeze(1)  # (R, 1)
        wrong = channel.substitute.sum(dim=1)[letter].unsqueeze(1)
        total, deletable = self.before.sum(dim=1), self.before[:, :MOST_DELETIONS]
        copied, after = torch.zeros_like(self.swapped), torch.zeros_like(self.before)
        copied[:, 1:] = total[:, :-1] * same
        after[:, 0, 1:] = copied[:, 1:] * (1 - wrong) + total[:, :-1] * other
        after[:, 0, 1:] -= deletable.sum(dim=1)[:, :-1] * same * delete
        after[:, 0] += self.swapped
        after[:, 1:] = deletable * delete.unsqueeze(1)
        return after, copied

    def with_insertions(self, after: Tensor) -> Tensor:
        """Insert up to two letters after the last clean one: (R, ..., J) -> (R, ..., J)."""
        shape = (-1, *(1,) * (after.dim() - 2))
        pick = self.last.view(-1, 1, 1).expand(-1, self.typed.band - 1, 1)
        each = self.at(self.typed.inserted).gather(2, pick).view(len(after), *shape[1:], -1)
        stop = 1 - self.typed.channel.insert.sum(dim=1)[self.last].view(*shape, 1)
        one, two = torch.zeros_like(after), torch.zeros_like(after)
        one[..., 1:] = after[..., :-1] * each
        two[..., 1:] = one[..., :-1] * each
        return (after + one) * stop + two

    def log_finished(self) -> Tensor:
        """Return the log-probability (R,) of the whole typed texts, if the clean ones end here."""
        whole = self.with_insertions(self.after_last()[0]).sum(dim=1)
        place = self.typed.sizes[self.window] - self.base
        found = whole.gather(1, place.clamp(max=self.typed.band - 1).unsqueeze(1)).squeeze(1)
        return torch.where(place < self.typed.band, found, 0.0).log() + self.scale

    def extended(self, letters: Tensor) -> "Extended":
        """Return the paths extended by each of some letters (R, E)."""
        channel, num = self.typed.channel, letters.shape[1]
        after, copied = self.after_last()
        real = self.last < channel.num_classes
        last = self.last.clamp(max=channel.num_classes - 1)
        swap = channel.swap[last.unsqueeze(1), letters] * real.unsqueeze(1)  # (R, E)
        before = self.with_insertions(after).unsqueeze(1).repeat(1, num, 1, 1)  # (R, E, D, J)
        before[:, :, 0] -= swap.unsqueeze(-1) * self.with_insertions(copied).unsqueeze(1)
        pick = letters.unsqueeze(1).expand(-1, self.typed.band - 1, -1)
        seen, others = self.at(self.typed.copied), self.at(self.typed.substituted)
        same, other = (v.gather(2, pick).transpose(1, 2) for v in (seen, others))  # (R, E, J - 1)
        swapped = torch.zeros(*letters.shape, self.typed.band, dtype=torch.float64)
        if self.typed.band > 2:
            free = self.at(self.typed.is_free)
            second = seen.gather(2, last.view(-1, 1, 1).expand(-1, self.typed.band - 1, 1)).squeeze(2) * free
            start = self.before.sum(dim=1)[:, :-2] * second[:, 1:] * free[:, :-1]  # (R, J - 2)
            swapped[..., 2:] = start.unsqueeze(1) * same[..., :-1] * swap.unsqueeze(-1)
        delete = channel.delete[self.last.unsqueeze(1), letters].unsqueeze(-1)  # (R, E, 1)
        wrong = channel.substitute.sum(dim=1)[letters].unsqueeze(-1)
        reached = swapped + before[:, :, :MOST_DELETIONS].sum(dim=2) * delete
        reached[..., 1:] += before.sum(dim=2)[..., :-1] * (same * (1 - wrong - delete) + other)
        return Extended(self, letters, before, swapped, reached)


@dataclass
class Extended:
    """Paths that were extended by letters.

    Args:
        paths: the paths before.
        letters: the letters, of shape (R, E).
        before: probabilities (R, E, D, J) at the gap before the new letter.
        swapped: probabilities (R, E, J) after a swap of the new letter with the one before it.
        reached: probabilities (R, E, J) after the new letter, if it is not swapped with the next one, for ranking.
    """

    paths: Paths
    letters: Tensor
    before: Tensor
    swapped: Tensor
    reached: Tensor

    def log_reached(self, bonus: float, size: int) -> Tensor:
        """Return the logarithm (R, E) of `reached`, summed with a bonus in nats for each typed letter above `size`."""
        place = self.paths.base.unsqueeze(1) + torch.arange(self.reached.shape[-1]) - size  # (R, J)
        weight = torch.exp(bonus * place).unsqueeze(1)
        return (self.reached * weight).sum(dim=-1).log() + self.paths.scale.unsqueeze(1)

    def chosen(self, row: Tensor, choice: Tensor) -> Paths:
        """Return the paths of some extensions: the row and the number of the letter of each, (R',)."""
        p, typed = self.paths, self.paths.typed
        both = torch.cat([self.before[row, choice], self.swapped[row, choice].unsqueeze(1)], dim=1)  # (R', D + 1, J)
        total = both.sum(dim=(1, 2)).clamp(min=torch.finfo(torch.float64).tiny)  # guards impossible paths
        both = both / total.view(-1, 1, 1)
        index = torch.arange(typed.band)
        mean = (both.sum(dim=1) * index).sum(dim=1)
        base = torch.minimum(p.base[row] + (mean.long() - typed.band // 2).clamp(0, 2), torch.tensor(typed.last_base))
        if typed.last_base:  # move the band with the text
            both = torch.nn.functional.pad(both, (0, 2))
            moved = (index + (base - p.base[row]).unsqueeze(1)).unsqueeze(1)
            both = both.gather(2, moved.expand(-1, both.shape[1], -1))
        letter, scale = self.letters[row, choice], p.scale[row] + total.log()
        return Paths(typed, p.window[row], base, p.last[row], letter, both[:, :-1], both[:, -1], scale)


def substitutions(num_classes: int, error_rate: float) -> Channel:
    """Return a channel that only replaces classes, each by another one, drawn uniformly."""
    k, none = num_classes, torch.zeros(num_classes + 1, num_classes, dtype=torch.float64)
    other = (1 - torch.eye(k, dtype=torch.float64)) * error_rate / (k - 1)
    return Channel(none, none, other, torch.zeros_like(other))
