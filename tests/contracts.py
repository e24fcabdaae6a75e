"""What every model, noise process and sampler must pass: spaces small enough to enumerate, and exact checks on them."""

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from unordinal.diffusion.process import NoiseProcess
from unordinal.model import CategoricalModel
from unordinal.models.bound import importance_bound
from unordinal.models.diffusion import Diffusion

DRAWS = 20_000  # of the importance weights whose mean stands for P(x)


def all_events(num_classes: int, event_shape: tuple[int, ...]) -> Tensor:
    """Every x of the space: (K ** D, *event_shape)."""
    size = 1
    for n in event_shape:
        size *= n
    rows = list(itertools.product(range(num_classes), repeat=size))
    return torch.tensor(rows).reshape(-1, *event_shape)


class TableNet(nn.Module):
    """A fixed random network of (x_t, time) over a tiny space: a table of logits, nothing about it smooth.

    With `num_steps` 0 it does not know the time.
    """

    def __init__(
        self, num_classes: int, length: int, num_steps: int, seed: int = 0, num_input_classes: int | None = None
    ):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.num_inputs, self.num_steps = num_input_classes or num_classes, num_steps
        shape = (num_steps + 1, self.num_inputs**length, length, num_classes)
        self.table = nn.Parameter(1.5 * torch.randn(shape, generator=generator, dtype=torch.float64))

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        place = self.num_inputs ** torch.arange(z.shape[1] - 1, -1, -1)
        return self.table[(time * self.num_steps).round().long(), (z * place).sum(1)]


def chi_square_p_value(counts: Tensor, probabilities: Tensor) -> float:
    """Probability of a chi-square statistic at least as large as that of `counts` under `probabilities`."""
    expected = probabilities * counts.sum()
    statistic = ((counts - expected).square() / expected).sum()
    half_degrees = torch.tensor((len(counts) - 1) / 2, dtype=torch.float64)
    return float(torch.special.gammaincc(half_degrees, statistic.double() / 2))


def frequencies(model: CategoricalModel, num: int, seed: int, **settings: Any) -> Tensor:
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
        model.hooks.initialise(x)
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
            return importance_bound(self.model, self.events, DRAWS, rows=DRAWS)

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
        tighter = torch.stack([importance_bound(model, events, 16, rows=DRAWS)[0] for _ in range(200)])
    errors = [part.std(dim=0) / len(part) ** 0.5 for part in (elbo, tighter)]
    assert bool((elbo.mean(0) <= tighter.mean(0) + 4 * (errors[0] + errors[1])).all())
    assert bool((tighter.mean(0) <= log_p + 4 * (errors[1] + variance.sqrt())).all())
    assert float((tighter.mean(0) - elbo.mean(0)).mean()) > 0


def onehot(x: Tensor, num_classes: int) -> Tensor:
    return nn.functional.one_hot(x, num_classes).double()


def check_process(noise: NoiseProcess, times: list[tuple[float, float]]) -> None:
    """A noise process against Bayes' rule on one position, at pairs of times s < t, the last t being the end of time.

    Nothing here knows what the noise looks like: `marginal` is checked by draws, and all else against it.
    """
    k = noise.num_classes
    x = torch.arange(k).unsqueeze(1)  # every class, one position: (K, 1)
    r = torch.softmax(torch.linspace(-1, 1, k, dtype=torch.float64), 0).expand(k, 1, k)
    generator = torch.Generator().manual_seed(0)
    for t, s in times:
        now, then = torch.full((k,), t), torch.full((k,), s)
        q_t, q_s = noise.marginal(x, now)[:, 0], noise.marginal(x, then)[:, 0] if s else embedded(x, noise)
        torch.testing.assert_close(q_t.sum(-1), torch.ones(k, dtype=torch.float64))
        check_draws(noise.corrupt(x.repeat(20_000, 1), now.repeat(20_000), generator=generator).view(-1, k), q_t)
        whole, mixed = torch.zeros_like(q_s), torch.zeros(noise.num_input_classes, noise.num_input_classes).double()
        evidence = (r[0, 0] @ q_t).clamp(min=1e-300)  # of each z, (K_in,)
        for z in range(noise.num_input_classes):
            back = noise.posterior(onehot(x, k), torch.full((k, 1), z), now, then)[:, 0]  # q(x_s | z, x), (K, K_in)
            whole += torch.where(q_t[:, z : z + 1] > 0, q_t[:, z : z + 1] * back.nan_to_num(), 0.0)
            weight = r[0, 0] * q_t[:, z] / evidence[z]
            mixed[z] = (weight.unsqueeze(1) * torch.where(weight.unsqueeze(1) > 0, back, 0.0)).sum(0)
        torch.testing.assert_close(whole, q_s, rtol=1e-9, atol=1e-9)  # Chapman and Kolmogorov
        check_reverse(noise, r, (t, s), mixed, generator)
        check_loss(noise, r, t)
    check_prior(noise, x, times[-1][0], generator)


def embedded(x: Tensor, noise: NoiseProcess) -> Tensor:
    """x itself among the input classes, as probabilities: (K, K_in)."""
    return onehot(x[:, 0], noise.num_input_classes)


def check_draws(drawn: Tensor, probabilities: Tensor) -> None:
    """Draws (N, rows) against the probabilities (rows, classes) of each row."""
    for row in range(drawn.shape[1]):
        p = probabilities[row]
        counts = torch.bincount(drawn[:, row], minlength=len(p)).double()
        assert float(counts[p == 0].sum()) == 0
        if int((p > 0).sum()) > 1:
            assert chi_square_p_value(counts[p > 0], p[p > 0]) > 1e-5


def check_reverse(
    noise: NoiseProcess, r: Tensor, pair: tuple[float, float], mixed: Tensor, generator: torch.Generator
) -> None:
    """p(x_s | x_t) is the mixture of q(x_s | x_t, x_0) that r says, and `step` draws from it."""
    t, s = pair
    reachable = [z for z in range(noise.num_input_classes) if float(mixed[z].sum()) > 0]
    z = torch.tensor(reachable).unsqueeze(1)
    now, then = torch.full((len(z),), t), torch.full((len(z),), s)
    p = noise.posterior(r[:1].expand(len(z), -1, -1), z, now, then)[:, 0]
    torch.testing.assert_close(p, mixed[reachable], rtol=1e-9, atol=1e-9)
    logits = r[:1].log().expand(len(z), -1, -1).repeat(20_000, 1, 1)
    check_draws(noise.step(logits, z.repeat(20_000, 1), t, s, generator=generator).view(-1, len(z)), p)


def check_loss(noise: NoiseProcess, r: Tensor, t: float) -> None:
    """The bound's term is KL(q(x_s | x_t, x_0) || p(x_s | x_t)): one step back, or its rate in continuous time."""
    k, width = noise.num_classes, 1e-5
    s = t - width if noise.num_steps is None else t - 1
    x = torch.arange(k).unsqueeze(1)
    exact = None if noise.num_steps else torch.float64
    now, then = torch.full((k,), t, dtype=exact), torch.full((k,), s, dtype=exact)
    q_t = noise.marginal(x, now)[:, 0]
    for z in range(noise.num_input_classes):
        rows = q_t[:, z] > 0
        if not bool(rows.any()):
            continue
        noisy = torch.full((k, 1), z)
        q, p = (noise.posterior(start, noisy, now, then)[rows, 0] for start in (onehot(x, k), r))
        kl = torch.where(q > 0, q * (q / p).log(), 0.0).sum(-1)
        got = noise.loss(r.log(), x, noisy, now)[rows].double()
        if noise.num_steps is None:
            torch.testing.assert_close(got, kl / width, rtol=1e-3, atol=1e-4)
        else:
            torch.testing.assert_close(got, kl, rtol=1e-9, atol=1e-9)


def check_prior(noise: NoiseProcess, x: Tensor, end: float, generator: torch.Generator) -> None:
    """Draws of the prior follow `log_prior`, and the prior term is the KL from where the noise ends."""
    prior = noise.log_prior(torch.arange(noise.num_input_classes).unsqueeze(1)).double().exp()
    assert abs(float(prior.sum()) - 1) < 1e-6
    drawn = noise.draw_prior((20_000, 1), torch.device("cpu"), generator=generator)
    check_draws(drawn, prior.unsqueeze(0))
    q = noise.marginal(x, torch.full((len(x),), end))[:, 0]
    kl = torch.where(q > 0, q * (q / prior).log(), 0.0).sum(-1)
    torch.testing.assert_close(noise.prior_term(x).double(), kl, rtol=1e-5, atol=1e-7)


def reverse_matrix(noise: NoiseProcess, logits: Tensor, states: Tensor, t: float, s: float) -> Tensor:
    """p(x_s | x_t) over all pairs of states, rows x_t, from the textbook posterior; logits (S, *D, K) are of x_0."""
    now, then = torch.full((len(states),), t), torch.full((len(states),), s)
    p = noise.posterior(torch.softmax(logits, -1), states, now, then).flatten(1, -2)  # (S, D, K_in)
    flat = states.flatten(1)
    return torch.stack([p[:, torch.arange(flat.shape[1]), state].prod(-1) for state in flat], dim=1)


def analytic_elbo(model: Diffusion) -> Tensor:
    """The bound of every x of a diffusion in discrete steps, by enumeration of t and x_t: (S,)."""
    states = all_events(model.num_classes, tuple(model.event_shape))
    positions = torch.arange(states.shape[1])
    elbo = -model.noise.prior_term(states).double()
    for t in range(1, model.noise.num_terms + 1):
        times = torch.full((len(states),), t)
        marginal = model.noise.marginal(states, times)  # (S, L, K)
        for z in all_events(model.noise.num_input_classes, tuple(model.event_shape)):
            weight = marginal[:, positions, z].prod(-1)  # q(x_t = z | x_0)
            noisy = z.expand_as(states)
            elbo -= weight * model.noise.loss(model.logits(noisy, times), states, noisy, times)
    return elbo
