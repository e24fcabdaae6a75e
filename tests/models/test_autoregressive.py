"""Autoregressive models: exact probabilities by enumeration, samples, prompts, temperature, scoring in order."""

from typing import Any

import numpy as np
import pytest
import torch
from contracts import all_events, chi_square_p_value, frequencies
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.models.autoregressive import AutoregressiveModel, log_likelihood
from unordinal.nets.classes import ClassTransformer, SegmentTransformer
from unordinal.nets.settings import Transformer
from unordinal.progress import Watcher, watching
from unordinal.recipes.arm import ArmSettings

K, L = 3, 4
SMALL: dict[str, Any] = {"width": 8, "num_blocks": 2, "num_heads": 2, "conv": 3}
CASES = {
    "arm": ArmSettings(Transformer(**SMALL)),
    "auxiliary": ArmSettings(Transformer(**SMALL), auxiliary=True),
    "xl": ArmSettings(Transformer(**SMALL), num_segments=2),
    "xl, one by one": ArmSettings(Transformer(**SMALL), num_segments=4),
}


def made(name: str, *, length: int = L) -> AutoregressiveModel:
    torch.manual_seed(0)
    model = CASES[name].build(DataSpec("tiny", K, (length,)))
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    assert isinstance(model, AutoregressiveModel)
    return model.eval()


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_probabilities_sum_to_one_and_samples_follow_them(name: str) -> None:
    model = made(name)
    assert abs(float(model.log_prob(all_events(K, (L,))).exp().sum()) - 1) < 1e-4
    model = model.double()
    p = model.log_prob(all_events(K, (L,))).exp()
    assert abs(float(p.sum()) - 1) < 1e-6
    counts = frequencies(model, 20_000, seed=1)
    assert chi_square_p_value(counts, p) > 1e-4
    assert chi_square_p_value(counts, torch.roll(p, 1)) < 1e-4  # the test can fail


@torch.no_grad()
def test_the_bound_is_the_chain_rule() -> None:
    """log P(x) as the sum of log p(x_i | x_<i), each from the network run on the classes before it alone."""
    model, x = made("arm").double(), all_events(K, (L,))
    assert model.is_exact
    expected = torch.zeros(len(x), dtype=torch.float64)
    for place in range(L):
        filled = torch.cat([x[:, :place], torch.zeros_like(x[:, place:])], dim=1)  # what comes later must not matter
        log_p = torch.log_softmax(model.net(filled)[:, place], -1)
        expected += log_p.gather(-1, x[:, place : place + 1]).squeeze(-1)
    for score in (model.elbo(x), model.log_prob(x), -model(x)):
        torch.testing.assert_close(score, expected)


@torch.no_grad()
def test_a_prompt_comes_first_and_the_rest_is_conditional() -> None:
    model = made("arm").double()
    x = model.sample(20_000, prompt=torch.tensor([2, 0]), generator=torch.Generator().manual_seed(0))
    assert bool((x[:, :2] == torch.tensor([2, 0])).all())
    rest = all_events(K, (2,))
    joint = model.log_prob(torch.cat([torch.tensor([[2, 0]]).expand(len(rest), 2), rest], dim=1)).exp()
    counts = torch.bincount(x[:, 2] * K + x[:, 3], minlength=K * K).double()
    assert chi_square_p_value(counts, joint / joint.sum()) > 1e-4


@torch.no_grad()
def test_temperature() -> None:
    model = made("arm").double()
    first = model.sample(20_000, generator=torch.Generator().manual_seed(0), temperature=0.5)[:, 0]
    logits = model.net(torch.zeros(1, L, dtype=torch.long))[0, 0]
    expected = torch.softmax(logits / 0.5, -1)
    assert chi_square_p_value(torch.bincount(first, minlength=K).double(), expected) > 1e-4
    coldest = model.sample(2, temperature=0.0)
    assert torch.equal(coldest[0], coldest[1])
    assert torch.equal(model.sample(2, temperature=1e-300), coldest)
    assert torch.equal(model.sample(2, temperature=1e-40), coldest)
    assert torch.equal(made("arm").sample(2, temperature=1e-40), made("arm").sample(2, temperature=0.0))  # float32
    assert torch.equal(model.sample(2, temperature=1e-30), coldest)
    assert int(coldest[0, 0]) == int(logits.argmax())


def test_auxiliary_losses_follow_the_schedule() -> None:
    model = made("auxiliary")
    x = all_events(K, (L,))
    with torch.no_grad():
        features = model.net.features(x)
        log_p = [torch.log_softmax(model.net.out(h), -1).gather(-1, x[..., None]).sum((1, 2)) for h in features]
        assert model.second is not None
        after = [
            torch.log_softmax(model.second(h[:, :-1]), -1).gather(-1, x[:, 1:, None]).sum((1, 2)) for h in features
        ]
        model.hooks.progressed(0.0)
        torch.testing.assert_close(-model(x), log_p[0] + log_p[1] + 0.5 * (after[0] + after[1]))
        model.hooks.progressed(0.26)  # layer 1 of 2 stops at a quarter of the budget
        torch.testing.assert_close(-model(x), log_p[1] + 0.5 * after[1])


@torch.no_grad()
def test_scoring_in_order_remembers_what_came_before() -> None:
    torch.manual_seed(0)
    net = SegmentTransformer(K, segment=4, memory=64, **SMALL)
    model = AutoregressiveModel(net, event_shape=(8,))
    for parameter in model.parameters():
        parameter.data += 0.5 * torch.randn_like(parameter)
    model = model.double().eval()
    text = torch.randint(K, (1, 32))
    assert model.stepper.in_order is not None
    in_order, _ = model.stepper.in_order(text.view(4, 8), None)
    torch.testing.assert_close(in_order.sum(), model.log_prob(text)[0])  # one long sequence
    alone = model.log_prob(text.view(4, 8))
    torch.testing.assert_close(in_order[0], alone[0])
    assert not torch.allclose(in_order[1:], alone[1:])
    first, memory = model.stepper.in_order(text.view(4, 8)[:2], None)
    second, _ = model.stepper.in_order(text.view(4, 8)[2:], memory)
    torch.testing.assert_close(torch.cat([first, second]), in_order)  # the memory is passed on
    assert made("arm").stepper.in_order is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "num_samples` must be a whole number of at least 1"),
        ({"num_samples": 1, "event_shape": (0,)}, r"cannot have shape \(0,\)"),
        ({"num_samples": 1, "temperature": -1.0}, "temperature must be a number of at least 0, got -1"),
        ({"num_samples": 1, "prompt": torch.zeros(9, dtype=torch.long)}, "the prompt has 9 symbols, more than the 4"),
        ({"num_samples": 1, "prompt": torch.tensor([7])}, "the prompt has class 7"),
        ({"num_samples": 1, "prompt": torch.tensor([-3, 1])}, "the prompt has class -3"),
        ({"num_samples": 1, "prompt": torch.tensor([[1]])}, r"one row of integer classes, \(P,\); got shape \(1, 1\)"),
        ({"num_samples": 1, "steps": 3}, "has no setting steps"),
    ],
)
def test_impossible_samples_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made("arm").sample(**settings)


def test_dropout_leaves_what_passes_beside_the_layers() -> None:
    torch.manual_seed(0)
    net = ClassTransformer(5, width=32, num_blocks=24, num_heads=2, dropout=0.5)
    for block in net.blocks:
        for parameter in block.parameters():
            parameter.data += 0.02 * torch.randn_like(parameter)
    x = torch.randint(5, (4, 16))
    with torch.no_grad():
        trained, scored = net.train().features(x)[-1], net.eval().features(x)[-1]
    assert float(nn.functional.cosine_similarity(trained.flatten(), scored.flatten(), dim=0)) > 0.4
    model = AutoregressiveModel(net, event_shape=(16,)).train()
    torch.testing.assert_close(model.elbo(x), model.elbo(x))  # scoring has no dropout
    assert model.training


def test_training_finds_a_rule() -> None:
    """A class that is the one before plus one: nothing to guess but the first."""
    torch.manual_seed(0)
    model = AutoregressiveModel(ClassTransformer(5, width=16, num_blocks=1, num_heads=2), event_shape=(8,))
    x = (torch.arange(5).unsqueeze(1) + torch.arange(8)) % 5
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(150):
        optimizer.zero_grad()
        model(x).mean().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        assert abs(float(model.bits_per_dim(x).mean()) - 2.32 / 8) < 0.05


@pytest.mark.parametrize("length", [8, 10, 64])
def test_segments_follow_the_data(length: int) -> None:
    model = ArmSettings(Transformer(**SMALL), num_segments=4).build(DataSpec("tiny", K, (length,)))
    assert isinstance(model, AutoregressiveModel)
    assert isinstance(model.net, SegmentTransformer)
    assert 3 * model.net.segment < length <= 4 * model.net.segment
    assert model.net.segment + model.net.memory == length  # no distance that training lacks
    for wrong in (1, length + 1, -1):
        with pytest.raises(ValueError, match=f"must be 0, or between 2 and {length}, got {wrong}"):
            ArmSettings(Transformer(**SMALL), num_segments=wrong).build(DataSpec("tiny", K, (length,)))


@torch.no_grad()
def test_dropout_is_for_training_only() -> None:
    torch.manual_seed(0)
    model = ArmSettings(Transformer(dropout=0.5, **SMALL)).build(DataSpec("tiny", K, (L,))).train()
    assert isinstance(model, AutoregressiveModel)
    model.net.out.weight.normal_()
    x = all_events(K, (L,))
    torch.testing.assert_close(model.log_prob(x), model.log_prob(x))
    assert not torch.allclose(model(x), model(x))
    assert model.training


def table_model() -> tuple[AutoregressiveModel, Tensor, Tensor]:
    """A model of three positions, all events, and their probabilities."""
    torch.manual_seed(5)
    model = AutoregressiveModel(ClassTransformer(3, width=8, num_blocks=1, num_heads=1), event_shape=(3,)).double()
    for p in model.parameters():
        torch.nn.init.normal_(p)
    model.net.out.weight.data *= 2  # positions that depend on each other
    states = all_events(3, (3,))
    return model, states, model.log_prob(states).detach().exp()


def counts_of(x: Tensor) -> Tensor:
    return torch.bincount((x * torch.tensor([9, 3, 1])).sum(1), minlength=27).double()


def test_a_known_beginning_is_exact() -> None:
    model, states, p = table_model()
    x = model.sample(20_000, known=torch.tensor([2, -1, -1]), generator=torch.Generator().manual_seed(0))
    rows = states[:, 0] == 2
    assert counts_of(x)[~rows].sum() == 0
    assert chi_square_p_value(counts_of(x)[rows], p[rows] / p[rows].sum()) > 1e-4


def test_known_positions_elsewhere_by_particles() -> None:
    """Consistent: the distance from the conditional falls with the number of particles, and one particle ignores it."""
    model, states, p = table_model()
    rows = states[:, 2] == 1
    conditional = torch.where(rows, p, 0.0) / p[rows].sum()
    distances: list[float] = []
    for particles in (1, 64):
        with watching(Watcher()) as watcher:
            x = model.sample(
                5_000, known=torch.tensor([-1, -1, 1]), particles=particles, generator=torch.Generator().manual_seed(0)
            )
        assert bool((x[:, 2] == 1).all())
        distances.append(float((counts_of(x) / 5_000 - conditional).abs().sum() / 2))
        assert watcher.effective_particles is not None
        assert 1 <= watcher.effective_particles <= particles
    assert distances[0] > 0.2
    assert distances[1] < 0.04


def test_conditionals_are_those_of_the_chain_rule() -> None:
    model, states, p = table_model()
    log_p = model.stepper.log_probs(states)
    torch.testing.assert_close(log_p.sum(1).exp(), p)
    with pytest.raises(ValueError, match="class 3, but num_classes=3"):
        model.stepper.log_probs(states + 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"known": torch.tensor([0, 1])}, r"`known` must hold integers of shape \(3,\) or \(2, 3\)"),
        ({"known": torch.tensor([0, 3, -1])}, "`known` has class 3"),
        ({"known": torch.tensor([0, 1, 2])}, "leaves nothing free"),
        ({"known": torch.tensor([-1, 1, 2]), "particles": 0}, "`particles` must be at least 1"),
        ({"known": torch.tensor([-1, 1, 2]), "prompt": torch.tensor([0])}, "not both"),
    ],
)
def test_what_cannot_be_known_is_refused(settings: dict[str, Any], message: str) -> None:
    model, _, _ = table_model()
    with pytest.raises(ValueError, match=message):
        model.sample(2, **settings)


def tempered(model: AutoregressiveModel, states: Tensor, temperature: float) -> Tensor:
    """The probabilities of all events when every position is drawn at a temperature."""
    log_p = torch.log_softmax(model.net(states).detach() / temperature, -1)
    return log_p.gather(-1, states.unsqueeze(-1)).sum((1, 2)).exp()


@pytest.mark.parametrize("known", [(-1, 0, -1), (-1, -1, 2), (0, -1, 2)])
def test_known_positions_at_a_temperature_follow_the_tempered_conditional(known: tuple[int, ...]) -> None:
    """Candidates are weighed at the temperature at which they are drawn."""
    model, states, p = table_model()
    given = torch.tensor(known)
    rows = ((given < 0) | (states == given)).all(1)
    cold, plain = (torch.where(rows, q, 0.0) / q[rows].sum() for q in (tempered(model, states, 0.5), p))
    x = model.sample(5_000, known=given, particles=256, temperature=0.5, generator=torch.Generator().manual_seed(0))
    found = counts_of(x) / 5_000
    assert float((found - cold).abs().sum() / 2) < 0.03
    assert float((found - plain).abs().sum() / 2) > 0.06  # the temperature matters


def test_known_positions_that_no_candidate_can_have_at_temperature_0() -> None:
    model, _, _ = table_model()
    for wrong in range(3):
        known = torch.tensor([-1, -1, wrong])
        x = model.sample(4, known=known, temperature=0.0)
        assert bool((x[:, 2] == wrong).all())
        assert torch.equal(x[:, :2], model.sample(4, temperature=0.0)[:, :2])


@pytest.mark.parametrize("given", [torch.tensor([2, 0]), np.array([2, 0]), [2, 0], (2, 0)])
def test_prompts_and_known_positions_may_be_tensors_arrays_or_lists(given: Any) -> None:
    model = made("arm")
    expected = model.sample(3, prompt=torch.tensor([2, 0]), generator=torch.Generator().manual_seed(0))
    assert torch.equal(model.sample(3, prompt=given, generator=torch.Generator().manual_seed(0)), expected)
    known = type(given)([2, 0, -1, -1]) if isinstance(given, list | tuple) else np.array([2, 0, -1, -1])
    assert model.sample(3, known=known)[:, :2].tolist() == [[2, 0]] * 3


@pytest.mark.parametrize("name", ["prompt", "known"])
def test_ragged_lists_are_refused_in_one_line(name: str) -> None:
    given: dict[str, Any] = {name: [[0, 1], [0]]}
    with pytest.raises(ValueError, match=f"`{name}` must be .* lists of equal length, got list") as error:
        made("arm").sample(2, **given)
    assert "\n" not in str(error.value)


def test_the_stepper_draws_what_the_model_scores() -> None:
    """Step by step, with sequences that are picked again and again, as a beam search picks them."""
    model, states, _ = table_model()
    stepper, generator = model.stepper, torch.Generator().manual_seed(0)
    whole = stepper.log_probs(states)
    state, before, rows = stepper.first_state(len(states)), None, torch.arange(len(states))
    for place in range(3):
        log_p, state = stepper.next_log_probs(before, state)
        torch.testing.assert_close(log_p.exp().sum(-1), torch.ones(len(rows), dtype=torch.float64))
        before = states[rows, place]
        torch.testing.assert_close(log_p.gather(-1, before.unsqueeze(-1)).squeeze(-1), whole[rows, place])
        index = torch.randint(len(rows), (40,), generator=generator)
        rows, before, state = rows[index], before[index], stepper.select_state(state, index)


def test_log_probabilities_of_distant_classes_are_finite() -> None:
    """Where logits differ by 200 the probability is 0 in float32, and its logarithm is not."""
    model = made("arm")
    with torch.no_grad():
        model.net.out.bias.copy_(torch.tensor([0.0, 200.0, -200.0]))
    x = torch.tensor([[2, 0, 1, 2]])
    log_p = model.stepper.log_probs(x)
    assert bool(torch.isfinite(log_p).all())
    torch.testing.assert_close(log_p.sum(1), model.log_prob(x))


def test_likelihoods_of_short_logits_are_computed_in_float32() -> None:
    logits = torch.randn(2, 50, 256, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    x = torch.randint(256, (2, 50), generator=torch.Generator().manual_seed(1))
    got = log_likelihood(logits, x)
    assert got.dtype == torch.float32
    exact = torch.log_softmax(logits.double(), -1).gather(-1, x.unsqueeze(-1)).sum((1, 2))
    torch.testing.assert_close(got.double(), exact, rtol=1e-5, atol=1e-4)


def test_the_parts_that_it_has() -> None:
    model = made("arm")
    assert model.denoiser is None
    assert model.times is None
    assert model.weights is None
    assert model.network is not None
    assert made("xl").network is None  # it has a memory
    x = model.network.inputs["x"]
    assert model.network.module(x).shape == (2, L, K)
