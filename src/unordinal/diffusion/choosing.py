"""Which positions change in one reverse step: each for itself, or far apart from each other.

In one network call every position is predicted without regard to the others that change in the same call. Positions
that lie far apart hardly depend on each other, so that little is lost if they change together.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from unordinal.numerics import Rng, uniform

Chooser = Callable[[Tensor, Rng], Tensor]
"""Chooses positions from the probability of each, (N, *D), and returns booleans (N, *D)."""


def independent(p: Tensor, generator: Rng) -> Tensor:
    """Choose every position by itself with its probability: (N, *D) -> (N, *D) booleans.

    >>> independent(torch.tensor([[0.0, 1.0]]), None)
    tensor([[False,  True]])
    """
    return uniform(p.shape, p.device, generator) < p


def far_apart(p: Tensor, generator: Rng) -> Tensor:
    """Choose positions that lie far apart, each with its probability: (N, *D) -> (N, *D) booleans.

    This is systematic sampling. The probabilities are laid end to end along a line, and positions are chosen where the
    points u, u + 1, u + 2, ... fall, with one uniform u for each row. Every position keeps its own probability, the
    number of chosen positions is that of the mean up to one, and between two of them lies a whole unit of probability.
    Positions of a map are laid along a curve on which neighbours in the map are close (a Z-order curve).

    >>> far_apart(torch.full((1, 6), 1 / 3), torch.Generator().manual_seed(0)).int().tolist()
    [[1, 0, 0, 1, 0, 0]]
    """
    order = curve_order(p.shape[1:], p.device)
    along = p.flatten(1)[:, order].to(torch.float32 if p.device.type == "mps" else torch.float64)
    u = uniform((len(p), 1), p.device, generator)
    passed = torch.floor(along.cumsum(dim=1) + u)  # points at or before the end of each position's stretch
    before = torch.cat([torch.zeros_like(u), passed[:, :-1]], dim=1)
    chosen = torch.empty_like(along, dtype=torch.bool)
    chosen[:, order] = (passed > before) | (along >= 1)
    return chosen.view(p.shape)


def curve_order(shape: torch.Size, device: torch.device) -> Tensor:
    """Return the positions of an example, numbered row by row, in an order in which neighbours are close: (D,).

    >>> curve_order(torch.Size([2, 4]), torch.device("cpu")).tolist()
    [0, 1, 4, 5, 2, 3, 6, 7]
    """
    if len(shape) < 2:
        return torch.arange(shape.numel(), device=device)
    sides = torch.meshgrid(*(torch.arange(side, device=device) for side in shape), indexing="ij")
    key = torch.zeros(shape, dtype=torch.long, device=device)
    for bit in range(max(shape).bit_length()):  # the bits of the coordinates in turn
        for axis, coordinate in enumerate(reversed(sides)):
            key |= (coordinate >> bit & 1) << (bit * len(sides) + axis)
    return key.flatten().argsort()
