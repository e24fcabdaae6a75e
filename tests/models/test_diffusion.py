"""Multinomial diffusion against the exact P(x) of its reverse chain, by enumeration."""

import itertools
from collections.abc import Sequence

import pytest
import torch
from contracts import TableNet, all_events, analytic_elbo, chi_square_p_value, frequencies, reverse_matrix
from torch import Tensor, nn

from unordinal.config import ModelSettings
from unordinal.data.spec import DataSpec
from unordinal.diffusion.absorbing import AbsorbingNoise, MaskCountNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.models.diffusion import Diffusion
from unordinal.nets.settings import DiffusionTransformer, UNet
from unordinal.recipes.diffusion import MultinomialSettings

K, L, T = 3, 2, 4


MAP = (2, 2)  # of two classes: sixteen maps


def tiny_model(output: str = "leave-one-out", seed: int = 0, times: str = "uniform") -> Diffusion:
    noise = UniformNoise(K, cosine_schedule(T), output=output)
    return Diffusion(TableNet(K, L, T, seed), noise=noise, event_shape=(L,), times=times)


def transition(model: Diffusion, t: int, s: int) -> Tensor:
    """p(x_s | x_t) over all pairs of states, rows x_t, from the textbook posterior."""
    states = all_events(model.num_classes, tuple(model.event_shape))
    return reverse_matrix(model.noise, model.logits(states, torch.full((len(states),), t)), states, t, s)


def exact_probabilities(model: Diffusion, times: Sequence[float]) -> Tensor:
    """P(x_0) of the chain that visits `times`: the uniform start times one matrix per step."""
    size = model.num_classes ** model.event_shape.numel()
    p = torch.full((size,), 1 / size, dtype=torch.float64)
    for t, s in itertools.pairwise(times):
        p = p @ transition(model, int(t), int(s))
    return p


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
        p = exact_probabilities(model, model.noise.spaced_times(steps))
    counts = frequencies(model, 40_000, seed=1, steps=steps)
    assert chi_square_p_value(counts, p) > 1e-4
    wrong = torch.roll(p, 1)
    assert chi_square_p_value(counts, wrong) < 1e-4  # the test can fail


def test_training_loss_is_unbiased_whatever_the_times() -> None:
    states = all_events(K, (L,))
    with torch.no_grad():
        analytic = analytic_elbo(tiny_model())
        for times in ("uniform", "stratified", "importance", "stratified-importance"):
            model = tiny_model(times=times)
            torch.manual_seed(0)
            for _ in range(60):  # let importance find its probabilities
                draw = model.hooks.draw(64)
                model.hooks.observe(draw, model(states[torch.randint(len(states), (64,))], draw))
            draws = torch.stack([model(states[torch.randperm(len(states))].repeat(60, 1)).mean() for _ in range(300)])
            error = draws.std() / len(draws) ** 0.5
            assert abs(float(draws.mean() + analytic.mean())) < 4.5 * float(error), times


def test_observe_recovers_the_loss_at_each_time() -> None:
    model = tiny_model(times="importance")
    torch.manual_seed(0)
    x, t = all_events(K, (L,))[:4], torch.tensor([1, 2, 3, 4])
    state = torch.get_rng_state()
    weighted = model(x, t)
    torch.set_rng_state(state)
    plain = model.loss_at(x, t)
    model.hooks.observe(t, weighted.detach())
    torch.testing.assert_close(model.time_sampler.mean_square, plain.detach().float().square(), rtol=1e-5, atol=1e-6)


def test_denoiser_output_is_bayes_of_the_leave_one_out_one() -> None:
    """D(k) ~ r(k) q(z | k): the known term at k = z is all that differs."""
    plain, denoiser = tiny_model(), tiny_model("denoiser")
    states, t = all_events(K, (L,)), torch.full((K**L,), 2)
    with torch.no_grad():
        r = torch.softmax(denoiser.logits(states, t), -1)
        alpha = float(cosine_schedule(T).log_alpha(torch.tensor(2)).exp())
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
    for method in (tiny_model().elbo, tiny_model().log_weight):
        with pytest.raises(ValueError, match=message):
            method(x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "num_samples` must be a whole number of at least 1"),
        ({"num_samples": 1, "steps": 0}, "between 1 and 4"),
        ({"num_samples": 1, "steps": 5}, "between 1 and 4"),
        ({"num_samples": 1, "event_shape": (0,)}, r"cannot have shape \(0,\)"),
        ({"num_samples": 1, "depth": 1}, "has no setting depth"),
    ],
)
def test_impossible_samples_are_refused(settings: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_model().sample(**settings)  # type: ignore[arg-type]


def test_a_seed_reproduces_samples_and_chain() -> None:
    model = tiny_model()
    first, second = (model.sample(8, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)
    chain = list(model.denoiser.chain(8, generator=torch.Generator().manual_seed(3), steps=2))
    assert [t for t, _ in chain] == [4, 2, 0]


class Dropping(nn.Module):
    """A table of logits behind a dropout that changes nearly all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.dropout = TableNet(K, L, T), nn.Dropout(0.9)

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return self.dropout(self.table(z, time))


@torch.no_grad()
def test_scores_and_samples_have_no_dropout() -> None:
    model, states = (
        Diffusion(Dropping(), noise=UniformNoise(K, cosine_schedule(T)), event_shape=(L,)).train(),
        all_events(K, (L,)),
    )
    plain = tiny_model()
    for name in ("elbo", "log_weight"):
        torch.manual_seed(0)
        expected = getattr(plain, name)(states)
        torch.manual_seed(0)
        torch.testing.assert_close(getattr(model, name)(states), expected)
    for seed in range(3):
        first, second = (m.sample(50, generator=torch.Generator().manual_seed(seed)) for m in (model, plain))
        assert torch.equal(first, second)
        first, second = (m.reconstruct(states, generator=torch.Generator().manual_seed(seed)) for m in (model, plain))
        assert torch.equal(first, second)
    assert model.training
    torch.manual_seed(0)
    assert not torch.allclose(model.training_loss(states), plain.training_loss(states))


def test_what_importance_has_learned_is_restored() -> None:
    model, other = tiny_model(times="importance"), tiny_model(times="importance", seed=1)
    states = all_events(K, (L,))
    torch.manual_seed(0)
    for _ in range(60):
        draw = model.hooks.draw(64)
        model.hooks.observe(draw, model(states[torch.randint(len(states), (64,))], draw).detach())
    assert float(model.time_sampler.probabilities().std()) > 0.01
    other.hooks.restore(model.hooks.state())
    assert torch.equal(other.time_sampler.probabilities(), model.time_sampler.probabilities())
    assert not any("times" in name for name in model.state_dict())  # published weights hold no statistics


class KnowingNet(nn.Module):
    """A network that knows which map it denoises."""

    def __init__(self, x: Tensor):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))
        self.logits = 50.0 * torch.nn.functional.one_hot(x, 2).float()

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return self.logits + self.weight


def test_reconstructions() -> None:
    x = all_events(2, MAP)
    knowing = Diffusion(KnowingNet(x), noise=UniformNoise(2, cosine_schedule(100)), event_shape=MAP)
    assert torch.equal(knowing.reconstruct(x), x)
    first, second = (map_model().reconstruct(x, generator=torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, x)  # that network knows nothing


def map_model() -> Diffusion:
    torch.manual_seed(0)
    config = MultinomialSettings(UNet(4, num_levels=2, deep_blocks=2, num_heads=2), T, times="uniform")
    model = config.build(DataSpec("tiny", 2, MAP))
    for parameter in model.parameters():
        parameter.data += 0.4 * torch.randn_like(parameter)
    return model.double().eval().requires_grad_(False)


def test_a_diffusion_of_maps_is_what_its_chain_says() -> None:
    model, states = map_model(), all_events(2, MAP)
    p = exact_probabilities(model, model.noise.spaced_times(None))
    assert float(p.sum()) == pytest.approx(1, abs=1e-12)
    torch.manual_seed(0)
    draws = torch.stack([model.elbo(states.repeat(50, 1, 1)).reshape(50, -1) for _ in range(60)]).flatten(0, 1)
    error = draws.std(0) / len(draws) ** 0.5
    assert bool((draws.mean(0) <= p.log() + 4 * error).all())
    weights = model.log_weight(states.repeat(10_000, 1, 1)).reshape(10_000, -1).exp()
    assert bool(((weights.mean(0) - p).abs() < 4.5 * weights.std(0) / 100).all())
    for steps in (None, 2):
        counts = frequencies(model, 20_000, seed=1, steps=steps)
        exact = exact_probabilities(model, model.noise.spaced_times(steps))
        assert chi_square_p_value(counts, exact) > 1e-4
        assert chi_square_p_value(counts, torch.roll(exact, 1)) < 1e-4  # the test can fail


def test_maps_have_any_size_and_a_seed_reproduces_them() -> None:
    model = MultinomialSettings(UNet(4, num_levels=2), 3).build(DataSpec("tiny", 3, (4, 8))).eval()
    first, second, other = (
        model.sample(3, generator=torch.Generator().manual_seed(seed), event_shape=(6, 4)) for seed in (5, 5, 6)
    )
    assert first.shape == (3, 6, 4)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert model.sample(2).shape == (2, 4, 8)


@pytest.mark.parametrize(
    ("config", "shape", "message"),
    [
        (MultinomialSettings(UNet()), (3, 4), "multiples of 2; the maps of tiny are 3 x 4"),
        (MultinomialSettings(DiffusionTransformer()), (4, 4), "takes sequences"),
        (MultinomialSettings(UNet(), output="denoisr"), (4, 4), "unknown output 'denoisr'"),  # type: ignore[arg-type]
        (MultinomialSettings(UNet(), times="importanse"), (4, 4), "unknown times"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_fit_is_refused(config: ModelSettings, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config.build(DataSpec("tiny", 3, shape))


class NoTime(TableNet):
    """A table of logits that does not depend on the time."""

    reads_time = False

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return super().forward(z, torch.ones_like(time))


def masked_model() -> Diffusion:
    return Diffusion(NoTime(3, 3, 0, num_input_classes=4), noise=MaskCountNoise(3), event_shape=(3,))


@torch.no_grad()
def test_orders_of_an_absorbing_model() -> None:
    """Probabilities in an order sum to one; their mean over orders is that of the samples, and the IWBO's limit."""
    model, states = masked_model(), all_events(3, (3,))
    per_order = []
    for order in itertools.permutations(range(3)):
        log_p = model.log_prob_of_order(states, torch.tensor(order))
        assert float(log_p.exp().sum()) == pytest.approx(1)
        per_order.append(log_p)
    p = torch.stack(per_order).exp().mean(0)
    assert chi_square_p_value(frequencies(model, 20_000, seed=0), p) > 1e-4
    torch.manual_seed(0)
    draws = torch.stack([model.log_weight(states) for _ in range(600)]).exp()
    assert bool(((draws.mean(0) - p).abs() < 4.5 * draws.std(0) / 600**0.5 + 1e-9).all())
    given = model.log_prob_of_order(states, torch.tensor([2, 0, 1]), num_given=1)  # p(x_0, x_1 | x_2)
    for value in range(3):
        assert float(given[states[:, 2] == value].exp().sum()) == pytest.approx(1)
    timed = Diffusion(TableNet(3, 3, 1, num_input_classes=4), noise=AbsorbingNoise(3), event_shape=(3,))
    uniform = Diffusion(TableNet(3, 3, 0), noise=ContinuousUniformNoise(3), event_shape=(3,))
    assert model.orders is not None
    for other in (tiny_model(), timed, uniform):
        assert other.orders is None
    for call, message in (
        (lambda: model.log_prob_of_order(states, torch.tensor([0, 0, 1])), "each of the 3 positions once"),
        (lambda: tiny_model().log_prob_of_order(all_events(K, (L,)), torch.arange(L)), "order"),  # no mask
        (lambda: timed.log_prob_of_order(states, torch.arange(3)), "order"),  # needs a time
        (lambda: timed.log_weight(states), "order|importance weights"),
        (lambda: uniform.log_weight(states), "order|importance weights"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


class InHalf(nn.Module):
    """A table of logits in bfloat16, as autocast makes them."""

    def __init__(self, num_classes: int, length: int, num_steps: int, num_input_classes: int | None = None):
        super().__init__()
        self.table = TableNet(num_classes, length, num_steps, num_input_classes=num_input_classes)

    def forward(self, z: Tensor, time: Tensor) -> Tensor:
        return self.table(z, time).to(torch.bfloat16)


@torch.no_grad()
def test_losses_of_short_logits_are_computed_in_float32() -> None:
    """The closed form loses its digits in bfloat16, and with them its sign."""
    states = all_events(K, (L,))
    for noise in (UniformNoise(K, cosine_schedule(1000)), ContinuousUniformNoise(K), AbsorbingNoise(K)):
        net = InHalf(K, L, 1, num_input_classes=noise.num_input_classes)
        model = Diffusion(net, noise=noise, event_shape=(L,))
        for t in (1, 2, 500, 1000) if noise.num_steps else (0.001, 0.3, 1.0):
            times = torch.full((len(states),), t)
            z = noise.corrupt(states, times, generator=torch.Generator().manual_seed(0))
            logits = model.logits(z, times)
            assert logits.dtype == torch.float32
            got = noise.loss(logits, states, z, times)
            assert got.dtype == torch.float32
            exact = noise.loss(net(z, noise.network_time(times)).double(), states, z, times)
            torch.testing.assert_close(got.double(), exact, rtol=1e-4, atol=1e-5)
    model = Diffusion(InHalf(K, L, 1), noise=UniformNoise(K, cosine_schedule(1000)), event_shape=(L,))
    torch.manual_seed(0)
    first = torch.stack([model.loss_at(states, torch.ones(len(states), dtype=torch.long)) for _ in range(200)])
    assert first.dtype == torch.float32
    assert float(first.min()) > 0


@torch.no_grad()
def test_a_generator_reproduces_bounds_and_weights() -> None:
    states = all_events(K, (L,))
    for model in (tiny_model(), masked_model()):
        x = states if model.event_shape == (L,) else all_events(3, (3,))
        for score in (model.elbo, model.log_weight):
            torch.manual_seed(0)
            before = torch.get_rng_state()
            first, second, other = (score(x, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
            assert torch.equal(first, second)
            assert not torch.equal(first, other)
            assert torch.equal(torch.get_rng_state(), before)  # nothing of torch's own is used


def test_the_parts_that_a_diffusion_has() -> None:
    plain, masked = tiny_model(), masked_model()
    assert plain.times.num == T
    assert masked.times.num is None
    assert plain.orders is None
    assert masked.orders is not None
    assert plain.weights is not None
    assert masked.weights is not None
    assert plain.stepper is None
    assert not plain.has_invalid_codes
    uniform = Diffusion(TableNet(3, 3, 0), noise=ContinuousUniformNoise(3), event_shape=(3,))
    assert uniform.weights is None
    x, t = plain.network.inputs["x"], plain.network.inputs["t"]
    with torch.no_grad():
        torch.testing.assert_close(plain.network.module(x, t), plain.logits(x, t))
