"""What the tests of every model share: spaces small enough to enumerate, and exact checks on them."""

import itertools

import torch
from torch import Tensor, nn

from unordinal.model import CategoricalModel


def all_events(num_classes: int, event_shape: tuple[int, ...]) -> Tensor:
    """Every x of the space: (K ** D, *event_shape)."""
    size = 1
    for n in event_shape:
        size *= n
    rows = list(itertools.product(range(num_classes), repeat=size))
    return torch.tensor(rows).reshape(-1, *event_shape)


class TableNet(nn.Module):
    """A fixed random network of (x_t, time) over a tiny space: a table of logits, nothing about it smooth."""

    def __init__(self, num_classes: int, length: int, num_steps: int, seed: int = 0):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        shape = (num_steps + 1, num_classes**length, length, num_classes)
        self.table = nn.Parameter(1.5 * torch.randn(shape, generator=generator, dtype=torch.float64))
        self.num_classes, self.num_steps = num_classes, num_steps

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        place = self.num_classes ** torch.arange(z.shape[1] - 1, -1, -1)
        return self.table[(time * self.num_steps).round().long(), (z * place).sum(1)]


def chi_square_p_value(counts: Tensor, probabilities: Tensor) -> float:
    """Probability of a chi-square statistic at least as large as that of `counts` under `probabilities`."""
    expected = probabilities * counts.sum()
    statistic = ((counts - expected).square() / expected).sum()
    half_degrees = torch.tensor((len(counts) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(half_degrees, statistic.double() / 2))


def frequencies(model: CategoricalModel, num: int, seed: int, **settings: object) -> Tensor:
    """How often each x of the space came up in `num` samples: (K ** D,)."""
    x = model.sample(num, generator=torch.Generator().manual_seed(seed), **settings).reshape(num, -1)
    place = model.num_classes ** torch.arange(x.shape[1] - 1, -1, -1)
    return torch.bincount((x * place).sum(1), minlength=model.num_classes ** x.shape[1]).double()
