"""Guidance by labels: the distribution of guided samples, by enumeration."""

import itertools
import math
from typing import Any

import pytest
import torch
from contracts import chi_square_p_value
from forms import K, L, built, events_of, exact_log_prob
from torch import Tensor

from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import CategoricalModel
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.numerics import tempered

COND = torch.tensor([1, 0])
NUM = 8000
STEPS = 4  # of uniform noise


def fits(drawn: Tensor, x: Tensor, p: Tensor) -> bool:
    """Whether samples fit the probabilities of all x."""
    index = {tuple(row): place for place, row in enumerate(x.tolist())}
    counts = torch.bincount(torch.tensor([index[tuple(row)] for row in drawn.tolist()]), minlength=len(x)).double()
    is_rare = len(drawn) * p < 5
    pooled, expected = (torch.cat([v[~is_rare], v[is_rare].sum().reshape(1) + 1e-9]) for v in (counts, p))
    return chi_square_p_value(pooled, expected / expected.sum()) > 1e-4


def soften(model: CategoricalModel, factor: float = 0.6) -> None:
    """Make weights smaller, so that no class is nearly certain."""
    for weights in model.parameters():
        weights.mul_(factor)


def both(model: CategoricalModel, num: int) -> tuple[Tensor, Tensor]:
    """The dropped labels and the given ones, for a batch."""
    return model.dropped_labels(1.0).expand(num, -1), COND.expand(num, -1)


def mixed(free: Tensor, own: Tensor, guidance: float) -> Tensor:
    """Locally normalised log-probabilities."""
    return torch.log_softmax(tempered(torch.log_softmax(free, -1), torch.log_softmax(own, -1), guidance), -1)


def guided_arm(model: AutoregressiveModel, x: Tensor, guidance: float) -> Tensor:
    """The probability of every x when each class is drawn from the tempered distribution."""
    free, own = (model.net(x, cond) for cond in both(model, len(x)))
    log_p = mixed(free, own, guidance)
    log_p = log_p.gather(-1, x.unsqueeze(-1)).squeeze(-1)
    has_ended = torch.nn.functional.pad(x[:, :-1] == K, (1, 0)) if model.ends else torch.zeros_like(x, dtype=torch.bool)
    return torch.where(has_ended, 0.0, log_p).sum(1).exp()


def guided_absorbing(model: Diffusion, x: Tensor, guidance: float) -> Tensor:
    """The same for positions that are unmasked one by one in a random order."""
    total = torch.zeros(len(x), dtype=torch.float64)
    assert model.noise.mask is not None
    for order in itertools.permutations(range(L)):
        z, log_p = torch.full_like(x, model.noise.mask), torch.zeros(len(x), dtype=torch.float64)
        for place in order:
            logits = [model.evaluated_logits(z, torch.ones(len(x)), cond) for cond in both(model, len(x))]
            found = mixed(logits[0], logits[1], guidance)
            log_p += found[torch.arange(len(x)), place, x[:, place]]
            z[:, place] = x[:, place]
        total += log_p.exp() / math.factorial(L)
    return total


def guided_chain(model: Diffusion, x: Tensor, guidance: float) -> Tensor:
    """The same for uniform noise: every step draws x_s from the tempered p(x_s | x_t)."""
    noise = model.noise
    assert isinstance(noise, UniformNoise)
    current = torch.full((len(x),), float(K) ** -L, dtype=torch.float64)
    for t, s in itertools.pairwise(noise.spaced_times(STEPS)):
        at, to, parts = torch.full((len(x),), t), torch.full((len(x),), s), []
        for cond in both(model, len(x)):
            r = torch.softmax(model.evaluated_logits(x, at, cond), dim=-1)
            parts.append(noise.posterior(r, x, at, to).log())
        step = torch.log_softmax(tempered(parts[0], parts[1], guidance), dim=-1)  # (x_t, position, class)
        current = current @ torch.stack([step[:, range(L), target].sum(1).exp() for target in x], dim=1)
    return current


@pytest.mark.parametrize("guidance", [0.0, 0.5, 1.0, 2.5])
@pytest.mark.parametrize(
    ("name", "form", "truth"),
    [
        ("arm", "labels", guided_arm),
        ("arm", "ends and labels", guided_arm),
        ("absorbing", "labels", guided_absorbing),
        ("multinomial", "labels", guided_chain),
        ("uniform", "labels", guided_chain),
    ],
)
@torch.no_grad()
def test_guided_samples_follow_their_distribution(name: str, form: str, truth: Any, guidance: float) -> None:
    model, x = built(name, form), events_of(form)
    soften(model)
    p, own = truth(model, x, guidance), truth(model, x, 1.0)
    assert float(p.sum()) == pytest.approx(1, abs=1e-6)
    steps: Any = {"steps": STEPS} if truth is guided_chain else {}
    drawn = model.sample(NUM, cond=COND, guidance=guidance, generator=torch.Generator().manual_seed(3), **steps)
    assert fits(drawn, x, p)
    if guidance == 1 and name != "uniform":
        torch.testing.assert_close(own, exact_log_prob(model, x, COND).exp().double(), rtol=1e-5, atol=1e-8)
    assert fits(drawn, x, own) == (guidance == 1)


def test_the_joint_of_guided_samples_is_not_the_tempered_joint() -> None:
    model, x = built("arm", "labels"), events_of("labels")
    assert isinstance(model, AutoregressiveModel)
    with torch.no_grad():
        soften(model, 0.3)
        free, own = (model.unchecked_log_prob(x, cond) for cond in both(model, len(x)))
        joint = torch.softmax(tempered(free, own, 3.0), dim=0)
        assert float((guided_arm(model, x, 3.0) - joint).abs().sum()) > 0.01


@torch.no_grad()
def test_lengths_are_guided_too() -> None:
    model = built("absorbing", "ends and labels")
    drawn = model.sample(NUM, cond=torch.tensor([1, 3]), guidance=0.0, generator=torch.Generator().manual_seed(1))
    lengths = torch.bincount((drawn != K).sum(1), minlength=L + 1).double()
    assert chi_square_p_value(lengths, torch.tensor([4, 2, 6, 3]).double() / 15) > 1e-4


@pytest.mark.parametrize("name", ["arm", "absorbing", "multinomial"])
def test_guidance_without_labels_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="`guidance` is for models that were trained with labels"):
        built(name, "ends").sample(1, guidance=2.0)


def test_uniform_noise_has_guidance_or_sharper_predictions() -> None:
    model = built("multinomial", "labels")
    with pytest.raises(ValueError, match="give `guidance` or sharper predictions, not both"):
        model.sample(1, cond=COND, guidance=2.0, temperature=0.5)
    with pytest.raises(ValueError, match="`guidance` is for the sampler ancestral"):
        model.sample(1, cond=COND, guidance=2.0, sampler="spread")
