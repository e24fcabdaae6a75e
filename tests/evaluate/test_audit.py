"""The audit passes what is right, and finds each planted error."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from contracts import TableNet, all_events
from forms import built
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.evaluate.audit import Audit, audit
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer

K, L = 3, 3


def causal_model(seed: int = 0) -> AutoregressiveModel:
    torch.manual_seed(seed)
    model = AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(L,)).double()
    for weights in model.parameters():
        torch.nn.init.normal_(weights, std=0.7)
    return model.eval()


def masked_model() -> Diffusion:
    net = TableNet(K, L, 0, num_input_classes=K + 1)
    net.reads_time = False  # type: ignore[assignment]
    return Diffusion(net, noise=AbsorbingNoise(K), event_shape=(L,))


def uniform_model() -> Diffusion:
    return Diffusion(TableNet(K, L, 4), noise=UniformNoise(K, cosine_schedule(4)), event_shape=(L,))


def wrong(found: Audit) -> list[str]:
    return [finding.check for finding in found.findings if not finding.passed]


@pytest.mark.parametrize(
    "model", [causal_model(), masked_model(), uniform_model()], ids=["arm", "absorbing", "uniform"]
)
def test_what_is_right_passes(model: Any) -> None:
    found = audit(model)
    assert found.passed, found
    assert found.num_examples == K**L
    checks = [finding.check for finding in found.findings]
    assert ("log_prob sums to 1" in checks) == model.is_exact
    assert ("bound sums to at most 1" in checks) != model.is_exact


@pytest.mark.parametrize("name", ["arm", "absorbing"])
@pytest.mark.parametrize("form", ["columns", "ends"])
def test_columns_and_ends_are_enumerated_too(name: str, form: str) -> None:
    found = audit(built(name, form))
    assert found.passed, found
    assert found.num_examples == (12 if form == "columns" else 15)


def test_maps_are_enumerated_by_their_positions() -> None:
    net = TableNet(2, 4, 0, num_input_classes=3)

    class OnMaps(torch.nn.Module):
        reads_time = False

        def forward(self, z: Tensor, time: Tensor) -> Tensor:
            return net(z.flatten(1), time).view(*z.shape, 2)

    found = audit(Diffusion(OnMaps(), noise=AbsorbingNoise(2), event_shape=(2, 2)))
    assert found.passed, found
    assert found.num_examples == 16


def test_something_right_seldom_fails() -> None:
    model = causal_model()
    for seed in range(20):
        assert audit(model, seed=seed, num_samples=4000).passed, seed


def test_a_dropped_term_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model = uniform_model()
    loss = model.noise.loss

    def without_first(logits: Tensor, x: Tensor, z: Tensor, t: Tensor) -> Tensor:
        return torch.where(t == 1, 0.0, loss(logits, x, z, t))

    monkeypatch.setattr(model.noise, "loss", without_first)
    found = wrong(audit(model))
    assert found
    assert all(check.startswith("bound") for check in found)


def test_a_wrong_weight_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    model = masked_model()
    weight_at = model.noise.weight_at  # type: ignore[attr-defined]
    monkeypatch.setattr(model.noise, "weight_at", lambda t: 0.7 * weight_at(t))
    assert "bound sums to at most 1" in wrong(audit(model))


def test_an_unnormalised_head_is_found() -> None:
    model = causal_model()

    def unnormalised(x: Tensor) -> Tensor:
        return model.net(x).gather(2, x.unsqueeze(2)).squeeze(2).sum(dim=1)

    assert wrong(audit(K, L, log_prob=unnormalised)) == ["log_prob sums to 1"]


def test_a_biased_sampler_is_found() -> None:
    model = causal_model()
    found = audit(K, L, log_prob=model.log_prob, sample=lambda num: model.sample(num, temperature=0.8))
    assert wrong(found) == ["samples follow log_prob"]
    lost = audit(
        K, L, log_prob=model.log_prob, sample=lambda num: model.sample(num) + (torch.arange(num) % 99 == 0)[:, None]
    )
    assert wrong(lost) == ["samples are examples"]


def test_a_leak_of_the_future_is_found() -> None:
    model = causal_model()

    def leaking(x: Tensor) -> Tensor:
        logits = model.net(torch.roll(x, -1, dims=1))  # sees the class that it predicts
        return torch.log_softmax(logits, dim=-1).gather(2, x.unsqueeze(2)).squeeze(2).sum(dim=1)

    assert wrong(audit(K, L, log_prob=leaking)) == ["log_prob sums to 1"]


def test_a_changed_known_position_is_found() -> None:
    model = masked_model()

    def changing(known: Tensor) -> Tensor:
        x = model.sample(len(known), known=known)
        x[::500] = (x[::500] + 1) % K
        return x

    found = audit(K, L, fill=changing)
    assert wrong(found) == ["known positions are kept"]
    assert "in 19,960 of 20,000 samples" in str(found)


def truth() -> Tensor:
    """The log-probabilities of all examples of some distribution."""
    generator = torch.Generator().manual_seed(3)
    return torch.log_softmax(torch.randn(K**L, generator=generator, dtype=torch.float64), dim=0)


def number(x: Tensor) -> Tensor:
    return (x * K ** torch.arange(L - 1, -1, -1)).sum(dim=1)


def exactly(x: Tensor) -> Tensor:
    return truth()[number(x)]


def drawn(num: int) -> Tensor:
    return all_events(K, (L,))[torch.multinomial(truth().exp(), num, replacement=True)]


def test_bounds_are_held_against_probabilities_or_samples() -> None:
    def noisy(x: Tensor, gap: float) -> Tensor:
        return exactly(x) - gap + 0.3 * torch.randn(len(x), dtype=torch.float64)

    def lifted(x: Tensor) -> Tensor:  # one probable example is too high, others so low that the sum stays below 1
        return noisy(x, 2.0) + torch.where(number(x) == truth().argmax(), 2.3, 0.0)

    given: Any = {"log_prob": exactly, "sample": drawn}
    assert audit(K, L, bound=lambda x: noisy(x, 0.1), **given).passed
    assert audit(K, L, bound=lambda x: noisy(x, 0.1), sample=drawn).passed
    assert wrong(audit(K, L, bound=lifted, **given)) == ["bound is below log_prob"]
    assert wrong(audit(K, L, bound=lifted, sample=drawn)) == ["bound is below the logarithm of frequencies"]
    unbiased = audit(K, L, bound=lambda x: noisy(x, 0.1), expected_bound=lambda x: exactly(x) - 0.1)
    assert unbiased.passed, unbiased
    biased = audit(K, L, bound=lambda x: noisy(x, 0.3), expected_bound=lambda x: exactly(x) - 0.1)
    assert wrong(biased) == ["bound is unbiased"]


def test_importance_weights_have_the_mean_of_the_probability() -> None:
    def weight(x: Tensor, shift: float = 0.0) -> Tensor:  # log-normal, with the mean P(x)
        return exactly(x) + 0.4 * torch.randn(len(x), dtype=torch.float64) - 0.08 + shift

    assert audit(K, L, weight=weight, log_prob=exactly).passed
    assert audit(K, L, weight=weight).passed
    assert wrong(audit(K, L, weight=lambda x: weight(x, 0.1), log_prob=exactly)) == ["weights have the mean P"]
    assert wrong(audit(K, L, weight=lambda x: weight(x, 0.1))) == ["weights sum to 1"]


def test_a_conditional_distribution_is_checked() -> None:
    model = causal_model()

    def filled(known: Tensor) -> Tensor:  # draws free positions as if nothing were known
        return torch.where(known < 0, model.sample(len(known)), known)

    assert wrong(audit(K, L, log_prob=model.log_prob, fill=filled)) == ["filled positions follow log_prob"]


def test_functions_may_return_arrays_or_lists() -> None:
    def uniform(x: Tensor) -> list[float]:
        return [-L * math.log(K)] * len(x)

    def drawn_by_numpy(num: int) -> np.ndarray:
        return np.random.default_rng(0).integers(K, size=(num, L))

    assert audit(K, L, log_prob=uniform, sample=drawn_by_numpy).passed


def test_a_score_that_depends_on_the_batch_is_found() -> None:
    def normalised_over_the_batch(x: Tensor) -> Tensor:
        return torch.log_softmax(exactly(x) + number(x), dim=0)

    assert wrong(audit(K, L, log_prob=normalised_over_the_batch)) == ["log_prob does not depend on other examples"]


def test_the_bound_of_partial_masking_is_none() -> None:
    """Two sub-tokens of a bit that always agree: the truth is 1 bit, the published evaluator says half a bit."""

    def evaluator(x: Tensor) -> Tensor:
        agree = (x[:, 0] == x[:, 1]).double()
        return torch.log(agree * 0.5**0.5 + 1e-12)

    found = audit(2, 2, bound=evaluator)
    assert wrong(found) == ["bound sums to at most 1"]
    assert "sum to 1.4142" in str(found)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: audit(27, 8, log_prob=exactly), "282,429,536,481 examples, more than the 50,000 that are enumerated"),
        (lambda: audit(K, L), "nothing to audit; give at least one of `log_prob`, `bound`"),
        (lambda: audit("text", 3, log_prob=exactly), "invalid literal|expected"),
        (lambda: audit(K, log_prob=exactly), "at least one position"),
        (lambda: audit((2, 3), 3, log_prob=exactly), "`length` is 3, but the classes of 2 positions are given"),
        (lambda: audit((2, 3), log_prob=exactly, ends=True), "cannot end early"),
        (lambda: audit(K, L, log_prob=lambda x: exactly(x)[:5]), "expected one number for each of 27 examples"),
        (lambda: audit(K, L, bound=exactly, draws=1), "`draws` must be at least 2"),
        (lambda: audit(torch.nn.Linear(2, 2)), "expected a model, a run, or the number of classes, got Linear"),
    ],
)
def test_what_cannot_be_audited_is_refused(call: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
