"""Validation: which of two sets of weights is better is told by the bound taken by enumeration."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from unordinal.data.splits import Split
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.model import CategoricalModel
from unordinal.models.diffusion import Diffusion
from unordinal.train.validation import MOST_ROUNDS, Validation, Validator

K, L, T = 3, 64, 50


class PositionNet(nn.Module):
    """Logits of x_0 at a position from the class and the time alone: every position can be enumerated by itself."""

    def __init__(self, seed: int):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        likely = torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64)  # of the classes of the data
        self.table = nn.Parameter(likely + 0.3 * torch.randn(T + 1, K, K, generator=generator, dtype=torch.float64))

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return self.table[(time * T).round().long().unsqueeze(1), z]


def data(num: int, seed: int) -> Tensor:
    """Independent classes, the first the likeliest."""
    weights = torch.softmax(torch.tensor([2.0, 0.0, -1.0]), 0)
    generator = torch.Generator().manual_seed(seed)
    return torch.multinomial(weights, num * L, replacement=True, generator=generator).view(num, L)


def diffusion(seed: int, mix: float) -> Diffusion:
    """Random weights moved towards others: the larger `mix`, the further."""
    net = PositionNet(2 * seed)
    with torch.no_grad():
        net.table.lerp_(PositionNet(2 * seed + 1).table, mix)
    return Diffusion(net, noise=UniformNoise(K, cosine_schedule(T)), event_shape=(L,), times="stratified")


@torch.no_grad()
def exact_bits(model: Diffusion, x: Tensor) -> float:
    """The mean bound of some examples, its expectation over t and x_t taken by enumeration of every position."""
    classes = torch.arange(K).unsqueeze(1)  # every x of one position
    nats = model.noise.prior_term(classes).double()
    for t in range(1, T + 1):
        times = torch.full((K,), t)
        marginal = model.noise.marginal(classes, times)[:, 0]
        for z in range(K):
            noisy = torch.full((K, 1), z)
            nats += marginal[:, z] * model.noise.loss(model.logits(noisy, times), classes, noisy, times)
    return float(nats[x].mean()) / math.log(2)


def pair_that_differs(seed: int, x: Tensor) -> tuple[Diffusion, Diffusion]:
    """Two sets of weights whose exact bounds differ by 0.02 bits, the worse one first."""
    plain = diffusion(seed, 0.0)
    target = exact_bits(plain, x)
    low, high = 0.0, 8.0  # so far beyond the others that they are worse
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if exact_bits(diffusion(seed, middle), x) < target + 0.02 else (low, middle)
    worse = diffusion(seed, high)
    assert exact_bits(worse, x) - target == pytest.approx(0.02, abs=1e-3)
    return worse, plain


@pytest.mark.slow
def test_of_two_weights_that_differ_by_two_hundredths_the_better_is_taken() -> None:
    """Ten examples, as 200 maps have for validation: in at least nine of ten seeds, whichever comes first."""
    right = 0
    for seed in range(10):
        x = data(10, seed)
        worse, better = pair_that_differs(seed, x)
        validator = Validator(Split(x.numpy().astype(np.uint8)), 128, 16)
        outcomes = []
        for first, second in ((worse, better), (better, worse)):
            old, new = (validator.add_round(model, Validation()) for model in (first, second))
            outcomes.append(validator.is_better(second, new, old, lambda first=first: first)[0])  # type: ignore[misc]
        right += outcomes == [True, False]
    assert right >= 9


def test_a_validation_is_unbiased_and_its_error_honest() -> None:
    x = data(40, 0)
    model = diffusion(0, 0.5)
    validator = Validator(Split(x.numpy().astype(np.uint8)), 400, 16)
    validation = Validation()
    for _ in range(MOST_ROUNDS):
        validation = validator.add_round(model, validation)
    error = validator.error(model, validation)
    assert error is not None
    assert abs(validation.bits - exact_bits(model, x)) < 4.5 * error
    assert len(validation.rounds) == MOST_ROUNDS


def test_the_same_weights_score_the_same_and_leave_the_stream_alone() -> None:
    x = data(20, 0).numpy().astype(np.uint8)
    validator, model = Validator(Split(x), 16, 4), diffusion(0, 0.5)
    before = torch.get_rng_state()
    first, second = (validator.add_round(model, Validation()) for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.get_rng_state())
    assert validator.add_round(model, first).rounds[1] != first.rounds[0]  # another round has other noise


def test_what_cannot_be_told_apart_is_equal_and_the_newer_is_taken() -> None:
    x = data(20, 0).numpy().astype(np.uint8)
    validator, model = Validator(Split(x), 20, 20), diffusion(0, 0.5)
    same = validator.add_round(model, Validation())
    is_better, new, best = validator.is_better(model, same, same, lambda: model)
    assert is_better
    assert len(new.rounds) == len(best.rounds) == MOST_ROUNDS


class Known(CategoricalModel):
    """An exact model of fixed bits."""

    def __init__(self, bits: float):
        super().__init__(K, (L,), is_exact=True)
        self.bits = bits

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        return torch.full((len(x),), -self.bits * L * math.log(2))

    def sample(self, num_samples: int, **settings: object) -> Tensor:
        return torch.zeros(num_samples, L, dtype=torch.long)


@pytest.mark.parametrize(("bits", "expected"), [(0.999, True), (1.0, True), (1.001, False)])
def test_exact_likelihoods_need_one_round(bits: float, expected: bool) -> None:
    validator = Validator(Split(np.zeros((3, L), np.uint8)), 100, 16)
    old, new = (validator.add_round(model, Validation()) for model in (Known(1.0), Known(bits)))
    is_better, *both = validator.is_better(Known(bits), new, old, lambda: Known(1.0))
    assert is_better == expected
    assert all(len(validation.rounds) == 1 for validation in both)
