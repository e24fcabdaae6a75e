"""Multinomial diffusion against the exact P(x) of its reverse chain, by enumeration."""

import itertools

import pytest
import torch
from contracts import TableNet, all_events, chi_square_p_value, frequencies
from torch import Tensor

from unordinal.models.diffusion import MultinomialDiffusion

K, L, T = 3, 2, 4


def tiny_model(output: str = "leave-one-out", seed: int = 0) -> MultinomialDiffusion:
    return MultinomialDiffusion(
        TableNet(K, L, T, seed), num_classes=K, event_shape=(L,), num_steps=T, output=output, times="uniform"
    )


def transition(model: MultinomialDiffusion, t: int, s: int) -> Tensor:
    """p(x_s | x_t) over all pairs of states, rows x_t, from the textbook posterior."""
    states = all_events(K, (L,))
    times, earlier = torch.full((len(states),), t), torch.full((len(states),), s)
    r = torch.softmax(model.logits(states, times), -1)
    p = model.noise.posterior(r, states, times, earlier)  # (S, L, K)
    return torch.stack([p[:, torch.arange(L), state].prod(-1) for state in states], dim=1)


def exact_probabilities(model: MultinomialDiffusion, times: list[int]) -> Tensor:
    """P(x_0) of the chain that visits `times`: the uniform start times one matrix per step."""
    p = torch.full((K**L,), 1 / K**L, dtype=torch.float64)
    for t, s in itertools.pairwise(times):
        p = p @ transition(model, t, s)
    return p


def analytic_elbo(model: MultinomialDiffusion) -> Tensor:
    """The bound of every x with its expectation over x_t taken by enumeration: (S,)."""
    states = all_events(K, (L,))
    elbo = torch.full((len(states),), -model.prior_term(states), dtype=torch.float64)
    for t in range(1, T + 1):
        times = torch.full((len(states),), t)
        marginal = model.noise.marginal(states, times)  # (S, L, K)
        for z in states:
            weight = marginal[:, torch.arange(L), z].prod(-1)  # q(x_t = z | x_0)
            noisy = z.expand(len(states), L)
            elbo -= weight * model.noise.loss(model.logits(noisy, times), states, noisy, times)
    return elbo


@pytest.mark.parametrize("output", ["leave-one-out", "denoiser"])
@torch.no_grad()
def test_bound_is_below_the_exact_probability_and_unbiased(output: str) -> None:
    model, states = tiny_model(output), all_events(K, (L,))
    p = exact_probabilities(model, [4, 3, 2, 1, 0])
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    analytic = analytic_elbo(model)
    assert (analytic <= p.log() + 1e-12).all()
    torch.manual_seed(0)
    draws = torch.stack([model.elbo(states.repeat(200, 1)).reshape(200, -1) for _ in range(100)]).flatten(0, 1)
    error = draws.std(0) / len(draws) ** 0.5
    assert ((draws.mean(0) - analytic).abs() < 4.5 * error).all()


@torch.no_grad()
def test_enumerating_every_path_gives_the_matrix_product() -> None:
    model = tiny_model()
    matrices = [transition(model, t, t - 1) for t in range(T, 0, -1)]
    paths = torch.full((K**L,), 1 / K**L, dtype=torch.float64)  # probability of each path so far, one axis per state
    for matrix in matrices:
        paths = paths.unsqueeze(-1) * matrix.reshape(*[1] * (paths.dim() - 1), K**L, K**L)
    assert paths.numel() == K ** (L * (T + 1))
    torch.testing.assert_close(paths.sum(tuple(range(T))), exact_probabilities(model, [4, 3, 2, 1, 0]))


@torch.no_grad()
def test_importance_weights_average_to_the_probability() -> None:
    model, states = tiny_model(), all_events(K, (L,))
    p = exact_probabilities(model, [4, 3, 2, 1, 0])
    torch.manual_seed(0)
    weights = model.log_weight(states.repeat(20_000, 1)).reshape(20_000, -1).double().exp()
    error = weights.std(0) / 20_000**0.5
    assert ((weights.mean(0) - p).abs() < 4.5 * error).all()


@pytest.mark.parametrize("steps", [None, 1, 2, 3])
def test_samples_follow_the_exact_probabilities(steps: int | None) -> None:
    model = tiny_model()
    with torch.no_grad():
        p = exact_probabilities(model, model.times_of(steps))
    counts = frequencies(model, 40_000, seed=1, steps=steps)
    assert chi_square_p_value(counts, p) > 1e-4
    wrong = torch.roll(p, 1)
    assert chi_square_p_value(counts, wrong) < 1e-4  # the test can fail


def test_training_loss_is_unbiased_whatever_the_times() -> None:
    states = all_events(K, (L,))
    with torch.no_grad():
        analytic = analytic_elbo(tiny_model())
        for times in ("uniform", "stratified", "importance", "stratified-importance"):
            model = tiny_model()
            model.times = type(model.times)(T, times)
            torch.manual_seed(0)
            for _ in range(60):  # let importance find its probabilities
                draw = model.draw(64)
                model.observe(draw, model(states[torch.randint(len(states), (64,))], draw))
            draws = torch.stack([model(states[torch.randperm(len(states))].repeat(60, 1)).mean() for _ in range(300)])
            error = draws.std() / len(draws) ** 0.5
            assert abs(float(draws.mean() + analytic.mean())) < 4.5 * float(error), times


def test_observe_recovers_the_loss_at_each_time() -> None:
    model = MultinomialDiffusion(TableNet(K, L, T), num_classes=K, event_shape=(L,), num_steps=T, times="importance")
    torch.manual_seed(0)
    x, t = all_events(K, (L,))[:4], torch.tensor([1, 2, 3, 4])
    state = torch.get_rng_state()
    weighted = model(x, t)
    torch.set_rng_state(state)
    plain = model.loss_at(x, t)
    model.observe(t, weighted)
    torch.testing.assert_close(model.times.mean_square, plain.detach().float().square(), rtol=1e-5, atol=1e-6)


def test_denoiser_output_is_bayes_of_the_leave_one_out_one() -> None:
    """D(k) ~ r(k) q(z | k): the known term at k = z is all that differs."""
    plain, denoiser = tiny_model(), tiny_model("denoiser")
    states, t = all_events(K, (L,)), torch.full((K**L,), 2)
    with torch.no_grad():
        r = torch.softmax(denoiser.logits(states, t), -1)
        alpha = float(plain.noise.log_alpha[2].exp())
        likelihood = alpha * torch.nn.functional.one_hot(states, K) + (1 - alpha) / K
        product = r * likelihood
        expected = torch.softmax(plain.logits(states, t), -1)
    torch.testing.assert_close(product / product.sum(-1, keepdim=True), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, L), "dtype torch.float32; expected integer classes"),
        (torch.zeros(2, dtype=torch.long), r"shape \(2,\); expected \(batch, 2\)"),
        (torch.full((2, L), 3), "class 3, but num_classes=3"),
        (torch.full((2, L), -1), "class -1, but num_classes=3"),
    ],
)
def test_what_is_not_this_models_data_is_refused(x: Tensor, message: str) -> None:
    for method in (tiny_model().training_loss, tiny_model().elbo, tiny_model().log_weight):
        with pytest.raises(ValueError, match=message):
            method(x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "num_samples must be at least 1"),
        ({"num_samples": 1, "steps": 0}, "between 1 and 4"),
        ({"num_samples": 1, "steps": 5}, "between 1 and 4"),
        ({"num_samples": 1, "event_shape": (0,)}, r"cannot have shape \(0,\)"),
    ],
)
def test_impossible_samples_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_model().sample(**settings)  # type: ignore[arg-type]


def test_a_seed_reproduces_samples_and_chain() -> None:
    model = tiny_model()
    first, second = (model.sample(8, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    chain = list(model.chain(8, generator=torch.Generator().manual_seed(3), steps=2))
    assert [t for t, _ in chain] == [4, 2, 0]
