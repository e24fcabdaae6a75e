"""Visit all positions of examples in a fixed order, each with its probabilities given those before: what a coder needs.

Each function is a generator that yields a `Visit`, is sent the classes that are there, and goes to the next one.
"""

import itertools
import math
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from unordinal.abilities import Stepper, Visit
from unordinal.model import device_of, evaluating, given_labels

if TYPE_CHECKING:
    from unordinal.models.any_order import AnyOrderModel
    from unordinal.models.diffusion import Diffusion
    from unordinal.models.tree import TreeModel

Visiting = Generator[Visit, Tensor, None]
CALLS = 64  # network calls of a diffusion, by default


def by_steps(stepper: Stepper, length: int, num: int, *, cond: Tensor | None = None) -> Visiting:
    """Visit the positions of autoregressive models, from left to right."""
    state, before = stepper.first_state(num, cond), None
    for place in range(length):
        log_p, state = stepper.next_log_probs(before, state)
        sent = yield Visit(torch.tensor([place]), log_p.unsqueeze(1))
        before = sent[:, 0].to(log_p.device)


@torch.no_grad()
def by_places(model: "AnyOrderModel", num: int, *, cond: Tensor | None = None) -> Visiting:
    """Visit the places of a model of any order, from left to right."""
    labels, before = given_labels(model.checked_cond(cond, num)), None
    state = model.net.init_state(num, **labels)
    for place in range(model.event_shape[0]):
        with evaluating(model):
            logits, state = model.net.step(before, place, state)
        sent = yield Visit(torch.tensor([place]), logits.unsqueeze(1))
        before = (sent[:, 0].to(logits.device), place)


def by_branches(model: "TreeModel", num: int) -> Visiting:
    """Visit the columns of a tree, each after its parent."""
    x = torch.zeros(num, len(model.sizes), dtype=torch.long)
    tables, parents = model.log_tables(), model.parents.tolist()
    for column in model.order():
        row = torch.zeros(num, dtype=torch.long) if parents[column] < 0 else x[:, parents[column]]
        sent = yield Visit(torch.tensor([column]), tables[column][row].unsqueeze(1))
        x[:, column] = sent[:, 0]


@torch.no_grad()
def by_calls(model: "Diffusion", num: int, *, cond: Tensor | None = None, calls: int = CALLS) -> Visiting:
    """Visit the positions of a diffusion with a mask, many that are far apart in each network call."""
    assert model.noise.mask is not None
    shape, device, labels = model.event_shape, device_of(model), model.checked_cond(cond, num)
    z = torch.full((num, shape.numel()), model.noise.mask, device=device)
    for group in distant_groups(shape, calls):
        places = torch.tensor(group)
        with evaluating(model):
            logits = model.logits(z.view(num, *shape), torch.ones(num, device=device), labels)
        sent = yield Visit(places, logits.reshape(num, shape.numel(), -1)[:, places])
        z[:, places] = sent.to(device)


def distant_groups(shape: Sequence[int], calls: int) -> list[list[int]]:
    """Return the positions of a grid, numbered row by row, in about `calls` groups of positions that are far apart.

    A group has the positions with the same remainders of division by a stride. Groups whose remainders are far apart
    follow each other.

    >>> distant_groups((6,), 3)
    [[0, 3], [2, 5], [1, 4]]
    """
    stride = max(1, round(calls ** (1 / len(shape))))
    strides = [min(stride, side) for side in shape]
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, place in enumerate(itertools.product(*map(range, shape))):
        groups.setdefault(tuple(p % s for p, s in zip(place, strides, strict=True)), []).append(number)
    bits = math.ceil(math.log2(stride)) if stride > 1 else 1

    def rank(remainders: tuple[int, ...]) -> list[int]:
        """Return the bits of the remainders, the lowest first: neighbours in this order are far apart."""
        return [(r >> bit) & 1 for bit in range(bits) for r in remainders]

    return [groups[key] for key in sorted(groups, key=lambda key: (rank(key), key))]
