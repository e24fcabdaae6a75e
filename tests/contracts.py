"""What the tests of every model share: spaces small enough to enumerate, and exact checks on them."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from unordinal.evaluate.likelihood import iwbo
from unordinal.model import CategoricalModel

DRAWS = 20_000  # of the importance weights whose mean stands for P(x)


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


@dataclass(frozen=True)
class Enumerated:
    """A model over a space small enough to enumerate, and a long IWBO of every x in it."""

    model: CategoricalModel

    @staticmethod
    def trained(model: CategoricalModel) -> "Enumerated":
        """Train for a moment, so that q(v | x) covers what p(v) gives to x: importance weights can be trusted."""
        events = all_events(model.num_classes, tuple(model.event_shape))
        x = events[torch.multinomial(torch.arange(1.0, len(events) + 1), 256, replacement=True)]
        model.initialise(x)
        optimizer = torch.optim.Adam(model.parameters(), 0.02)
        for _ in range(150):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
        return Enumerated(model.double().eval())

    @property
    def events(self) -> Tensor:
        return all_events(self.model.num_classes, tuple(self.model.event_shape))

    @cached_property
    def log_probabilities(self) -> tuple[Tensor, Tensor]:
        """A long IWBO of every x and its variance."""
        torch.manual_seed(0)
        with torch.no_grad():
            return iwbo(self.model, self.events, DRAWS, DRAWS, lambda _: None)

    def sampled(self, num: int) -> tuple[Tensor, float]:
        """How often each x came up in samples, and the share of samples with an invalid code."""
        x = self.model.sample(num, generator=torch.Generator().manual_seed(0)).flatten(1)
        k = self.model.num_classes
        bad = (x >= k).any(dim=1)
        index = (x * k ** torch.arange(x.shape[1] - 1, -1, -1)).sum(dim=1)[~bad]
        return torch.bincount(index, minlength=k ** x.shape[1]).double(), float(bad.double().mean())


def check_probabilities_and_samples(enumerated: Enumerated, num: int = 4000) -> None:
    """The P(x) sum to one minus the invalid mass, and samples come up as often as they say."""
    log_p, variance = enumerated.log_probabilities
    p = log_p.exp()
    counts, bad = enumerated.sampled(num)
    # standard errors of the sum of P(x) and of the share of invalid samples
    error = float((p.square() * variance).sum().sqrt()) + (max(bad * (1 - bad), 1 / num) / num) ** 0.5
    assert abs(float(p.sum()) - (1 - bad)) < 4.5 * error
    assert error < 0.05
    # each x: the difference of two independent estimates
    spread = (p.square() * variance + p * (1 - p) / num).sqrt()
    assert float(((counts / num - p).abs() / spread).max()) < 5


def check_bounds_are_ordered(enumerated: Enumerated) -> None:
    """ELBO <= IWBO <= log P in the mean, for every x, and strictly for all of them together."""
    model, events = enumerated.model, enumerated.events
    log_p, variance = enumerated.log_probabilities
    torch.manual_seed(1)
    with torch.no_grad():
        elbo = torch.stack([model.elbo(events) for _ in range(400)])
        tighter = torch.stack([iwbo(model, events, 16, DRAWS, lambda _: None)[0] for _ in range(200)])
    errors = [part.std(dim=0) / len(part) ** 0.5 for part in (elbo, tighter)]
    assert bool((elbo.mean(0) <= tighter.mean(0) + 4 * (errors[0] + errors[1])).all())
    assert bool((tighter.mean(0) <= log_p + 4 * (errors[1] + variance.sqrt())).all())
    assert float((tighter.mean(0) - elbo.mean(0)).mean()) > 0
