"""Channels of errors and small models, for the tests of corrections."""

import torch
from torch import Tensor, nn

from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.nets.classes import ClassTransformer
from unordinal.tasks.channel import Channel


def random_channel(k: int, seed: int = 0) -> Channel:
    """Return a channel with many edits of all kinds."""
    rng = torch.Generator().manual_seed(seed)

    def draw(rows: int) -> Tensor:
        return torch.rand(rows, k, dtype=torch.float64, generator=rng) * 0.3 / k

    off = 1 - torch.eye(k, dtype=torch.float64)
    return Channel(draw(k + 1), draw(k + 1), draw(k) * off, draw(k) * off)


def light_channel(k: int, share: float, seed: int = 0) -> Channel:
    """Return a channel with a share of the edits of a random one."""
    heavy = random_channel(k, seed)
    return Channel(share * heavy.insert, share * heavy.delete, share * heavy.substitute, share * heavy.swap)


def causal_model(k: int, length: int, *, ends: bool = False) -> AutoregressiveModel:
    torch.manual_seed(0)
    net = ClassTransformer(k + ends, width=8, num_blocks=1, num_heads=1)
    model = AutoregressiveModel(net, event_shape=(length,), ends=ends).double()
    nn.init.normal_(model.net.out.weight, std=1.5)
    return model.eval()
