"""Autoregressive models of places in any order: exact likelihoods, and conditions on any places."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from unordinal.abilities import Conditional, Marginals, Orders, Visits
from unordinal.checks import check_classes, sample_shape
from unordinal.model import ExactModel, evaluating, given_labels
from unordinal.models.visiting import by_places
from unordinal.nets.orders import OrderTransformer
from unordinal.numerics import Rng, draw_categorical, full_precision, sharpened, sum_except_batch, uniform
from unordinal.progress import current_watcher

FEW_ORDERS = 4  # for quick answers
ORDER_SEED = 0  # of the orders of the mean


class AnyOrderModel(ExactModel):
    """A mean of autoregressive models, one for each of some orders of the places.

    P(x) is the mean over `num_orders` orders, which are the same for all examples: it is normalised. Samples draw one
    of these orders each. Training draws an order for each example, so that one network serves all orders. Places that
    are known come first, so that conditions on them are exact for the order that results; other orders have other joint
    distributions, as the network is not the same function of each.

    Args:
        net: the network.
        event_shape: (L,), the number of places.
        num_orders: the number of orders of the mean.
        labels: the number of classes of each label that may be given with an example.

    >>> model = AnyOrderModel(OrderTransformer((2, 3), 2, width=8, num_blocks=1, num_heads=1), event_shape=(2,))
    >>> model.sample(3, known=[-1, 2])[:, 1].tolist()
    [2, 2, 2]
    """

    all_orders: Tensor

    def __init__(
        self, net: OrderTransformer, *, event_shape: tuple[int, ...], num_orders: int = 16, labels: tuple[int, ...] = ()
    ):
        super().__init__(net.classes, event_shape, labels=labels, has_places=True)
        self.net, self.num_orders = net, num_orders
        generator = torch.Generator().manual_seed(ORDER_SEED)
        orders = torch.stack([torch.randperm(event_shape[0], generator=generator) for _ in range(num_orders)])
        self.register_buffer("all_orders", orders, persistent=False)

    @property
    def marginals(self) -> Marginals:
        return self.log_prob_of_known

    @property
    def orders(self) -> Orders:
        """The likelihood of one order."""
        return self.log_prob_of_order

    @property
    def visits(self) -> Visits:
        return partial(by_places, self)

    def place_log_probs(self, x: Tensor, order: Tensor, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of each place given those before it in its order (B, L): (B, L)."""
        logits = full_precision(self.net(x, order, cond))
        return self.classes.log_prob(logits, x)

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        each = [sum_except_batch(self.place_log_probs(x, order.expand(len(x), -1), cond)) for order in self.all_orders]
        return torch.stack(each).logsumexp(dim=0) - math.log(self.num_orders)

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        x, cond = x.long(), self.checked_cond(cond, len(x)) if cond is None else cond
        order = torch.rand(x.shape, device=x.device).argsort(dim=1)
        return -sum_except_batch(self.place_log_probs(x, order, cond))

    @torch.no_grad()
    def log_prob_of_order(self, x: Tensor, order: Tensor, *, num_given: int = 0, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of x in an order (L,) or (B, L), without its first `num_given` places: (B,)."""
        check_classes(self, x)
        order = order.to(x.device).expand(len(x), x.shape[1])
        with evaluating(self):
            log_p = self.place_log_probs(x.long(), order, self.checked_cond(cond, len(x)))
        return log_p.gather(1, order[:, num_given:]).sum(dim=1)

    @torch.no_grad()
    def log_prob_of_known(self, known: Tensor, *, cond: Tensor | None = None) -> Tensor:
        """Return the log-probability of the known places of examples, -1 elsewhere, with the others summed out: (B,).

        The known places come first in every order, so that the others need not be summed: it is exact for these orders.
        """
        is_free = known < 0
        x, labels = known.clamp(min=0), self.checked_cond(cond, len(known))
        found = []
        with evaluating(self):
            for order in self.all_orders:
                log_p = self.place_log_probs(x, known_first(order, is_free), labels)
                found.append(torch.where(is_free, 0.0, log_p).sum(dim=1))
        return torch.stack(found).logsumexp(dim=0) - math.log(self.num_orders)

    @property
    def conditional(self) -> Conditional:
        quick = partial(self.log_probs_given, num_orders=FEW_ORDERS)
        return Conditional(self.log_probs_given, self.spread_over_orders, quick)

    @torch.no_grad()
    def log_probs_given(
        self, known: Tensor, places: Sequence[int], *, cond: Tensor | None = None, num_orders: int | None = None
    ) -> list[Tensor]:
        """Return the log-probabilities (B, K) of some places given known ones (B, L), -1 elsewhere.

        The known places come first in each order, and all places are predicted from these alone. The orders, or the
        first `num_orders` of them, count with the probability that they give to what is known, as Bayes' rule says.
        """
        seen, found = self.given_in_each_order(known, places, cond, num_orders)
        weight = torch.log_softmax(seen, dim=0).unsqueeze(-1)  # (orders, B, 1)
        return [(weight + log_p).logsumexp(dim=0) for log_p in found]

    @torch.no_grad()
    def spread_over_orders(self, known: Tensor, place: int) -> Tensor:
        """Return the standard deviation over orders of the probabilities (B, K) of a place given known ones."""
        _, (log_p,) = self.given_in_each_order(known, [place], None)
        return log_p.exp().std(dim=0, correction=0)

    def given_in_each_order(
        self, known: Tensor, places: Sequence[int], cond: Tensor | None, num_orders: int | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Return the log-probability of what is known (orders, B), and those of places given it (orders, B, K)."""
        is_free, x, labels = known < 0, known.clamp(min=0), self.checked_cond(cond, len(known))
        num_given = (~is_free).sum(dim=1)
        seen, found = [], []
        with evaluating(self):
            for order in self.all_orders[:num_orders]:
                logits = full_precision(self.net(x, known_first(order, is_free), labels, num_given))
                seen.append(torch.where(is_free, 0.0, self.classes.log_prob(logits, x)).sum(dim=1))
                found.append([torch.log_softmax(self.classes.at(logits, place), dim=-1) for place in places])
        return torch.stack(seen), [torch.stack(each) for each in zip(*found, strict=True)]

    @torch.no_grad()
    def sample(
        self,
        num_samples: int,
        *,
        generator: Rng = None,
        event_shape: tuple[int, ...] | None = None,
        temperature: float = 1.0,
        known: Any = None,
        cond: Any = None,
        **settings: Any,
    ) -> Tensor:
        """Draw one place after another, each sample in one of the orders.

        Args:
            num_samples: how many, N.
            generator: the random number generator; default: torch's global one.
            event_shape: the model's own; others are refused.
            temperature: divides the logits; 0 takes the likeliest class.
            known: classes (N, L), or (L,) for all samples, of places that are given, -1 where they are free. They come
                first in the order, so that the condition is exact for it.
            cond: labels, of shape (N, J), or (J,) for all samples.

        Returns:
            Classes, of shape (N, L).
        """
        shape = sample_shape(self, num_samples, event_shape, settings)
        if not 0 <= temperature < math.inf:
            raise ValueError(f"the temperature must be a number of at least 0, got {temperature:g}")
        device, labels = self.net.device, self.checked_cond(cond, num_samples)
        given = torch.full((num_samples, *shape), -1, device=device)
        if known is not None:
            given = self.checked_known(known, num_samples, shape).to(device)
        picked = (uniform((num_samples,), device, generator) * self.num_orders).long()
        drawn = torch.empty_like(given)
        with evaluating(self):
            for rows, order in self.groups(given, picked):
                part = None if labels is None else labels[rows]
                drawn[rows] = self.drawn(given[rows], order, part, temperature, generator)
        return drawn

    def groups(self, known: Tensor, picked: Tensor) -> list[tuple[Tensor, list[int]]]:
        """Return the samples that share an order, known places first, and this order."""
        both = torch.cat([picked.unsqueeze(1), (known >= 0).long()], dim=1)
        pattern, which = torch.unique(both, dim=0, return_inverse=True)
        found = []
        for number, row in enumerate(pattern.tolist()):
            order = self.all_orders[row[0]].tolist()
            order = [place for place in order if row[1 + place]] + [place for place in order if not row[1 + place]]
            found.append((torch.nonzero(which == number).flatten(), order))
        return found

    def drawn(self, known: Tensor, order: list[int], cond: Tensor | None, temperature: float, generator: Rng) -> Tensor:
        """Draw samples with given places (N, L) in one order."""
        watcher, num = current_watcher(), len(known)
        state, before = self.net.init_state(num, **given_labels(cond)), None
        x = known.clone()
        for place in order:
            logits, state = self.net.step(before, place, state)
            free = draw_categorical(sharpened(full_precision(logits), temperature), generator)
            x[:, place] = torch.where(known[:, place] < 0, free, known[:, place])
            before = (x[:, place], place)
            watcher.network_calls += num
            watcher.advance(num / len(order))
        return x


def known_first(order: Tensor, is_free: Tensor) -> Tensor:
    """Return an order (L,) for each example (B, L), in which the places that are not free come first."""
    rank = order.argsort().expand_as(is_free) + len(order) * is_free
    return rank.argsort(dim=1)
