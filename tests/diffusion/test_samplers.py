"""Samplers, compared with the exact distribution of their chain by enumeration."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from contracts import TableNet, all_events, chi_square_p_value, reverse_matrix
from sampler_truth import ABSORBING, UNIFORM, Space, markov_data
from torch import Tensor

from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.predictor import Predictor
from unordinal.diffusion.process import NoiseProcess
from unordinal.diffusion.samplers import (
    SAMPLERS,
    Ancestral,
    Corrected,
    Sampler,
    Spread,
    corrected,
    default_sampler,
    last,
    suitable_samplers,
)
from unordinal.diffusion.schedules import Schedule, cosine_schedule, linear
from unordinal.diffusion.uniform import UniformNoise
from unordinal.diffusion.unmasking import FirstHitting, LowestEntropy
from unordinal.progress import Watcher, watching

K, L, T = 3, 2, 4
NOISE = UniformNoise(K, cosine_schedule(T))
NET = TableNet(K, L, T)


def predict(z: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return NET(z, NOISE.network_time(t))


def predictor() -> Predictor:
    return Predictor(predict)


@pytest.mark.parametrize("steps", [None, 1, 3])
@torch.no_grad()
def test_ancestral_sampling_follows_the_chain(steps: int | None) -> None:
    states, times = all_events(K, (L,)), NOISE.spaced_times(steps)
    p = torch.full((K**L,), 1 / K**L, dtype=torch.float64)
    for t, s in itertools.pairwise(times):
        p = p @ reverse_matrix(NOISE, predict(states, torch.full((len(states),), t)), states, t, s)
    generator = torch.Generator().manual_seed(0)
    z = NOISE.draw_prior((40_000, L), torch.device("cpu"), generator=generator)
    x = last(Ancestral(steps).chain(predictor(), NOISE, z, generator=generator))
    counts = torch.bincount((x * torch.tensor([K, 1])).sum(1), minlength=K**L).double()
    assert chi_square_p_value(counts, p) > 1e-4
    assert chi_square_p_value(counts, torch.roll(p, 1)) < 1e-4  # the test can fail


@torch.no_grad()
def test_calls_states_and_progress_are_reported_to_the_watcher() -> None:
    seen: list[float] = []
    reported: list[float] = []
    z = torch.zeros(5, L, dtype=torch.long)
    with watching(Watcher(reported.append, lambda t, x: seen.append(t) or None)) as watcher:  # type: ignore[func-returns-value]
        chain = list(Ancestral(3).chain(predictor(), NOISE, z))
    assert [t for t, _ in chain] == seen == [4, 3, 1, 0]
    assert watcher.network_calls == 15  # three for each of the five samples
    assert sum(reported) == pytest.approx(5)  # five complete samples
    assert torch.equal(chain[0][1], z)


@torch.no_grad()
def test_a_chain_may_start_at_a_fraction() -> None:
    z = torch.zeros(2, L, dtype=torch.long)
    assert [t for t, _ in Ancestral(start=0.5).chain(predictor(), NOISE, z)] == [2, 1, 0]


# A space of three positions whose data have a known distribution, so that the exact prediction is known too.
DATA = torch.softmax(1.5 * torch.randn(K**3, generator=torch.Generator().manual_seed(3), dtype=torch.float64), 0)
STATES = all_events(K, (3,))
MASKS = AbsorbingNoise(K)


def exact_masked(z: Tensor, t: Tensor) -> Tensor:
    """log p(x_0 at each position | what is shown), from the data's own distribution."""
    fits = ((z.unsqueeze(1) == K) | (z.unsqueeze(1) == STATES)).all(-1)  # (N, S)
    weight = fits * DATA
    onehot = torch.nn.functional.one_hot(STATES, K).double()
    return torch.einsum("ns,slk->nlk", weight / weight.sum(-1, keepdim=True), onehot).log()


def drawn(sampler: Sampler, num: int, known: Tensor | None = None, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    z = MASKS.draw_prior((num, 3), torch.device("cpu"))
    predict = Predictor(exact_masked, reads_time=False)
    return last(sampler.chain(predict, MASKS, z, known=known, generator=generator))


def made(name: str, *calls: int) -> Sampler:
    """A sampler by name; the interface says nothing of how one is made."""
    kind: Any = SAMPLERS[name]
    return kind(*calls)


def counts_of(x: Tensor) -> Tensor:
    return torch.bincount((x * torch.tensor([K**2, K, 1])).sum(1), minlength=K**3).double()


def test_first_hitting_with_the_exact_network_draws_from_the_data() -> None:
    counts = counts_of(drawn(FirstHitting(), 20_000))
    assert chi_square_p_value(counts, DATA) > 1e-4
    assert chi_square_p_value(counts_of(drawn(FirstHitting(1), 20_000)), DATA) < 1e-4  # all at once does not


def distance(counts: Tensor, p: Tensor) -> float:
    """Total variation distance."""
    return float((counts / counts.sum() - p).abs().sum() / 2)


def test_approximations_approach_the_data_with_more_calls() -> None:
    for make in (Ancestral, FirstHitting):
        far, near = (distance(counts_of(drawn(make(steps), 20_000)), DATA) for steps in (1, 3))
        assert near < 0.8 * far
    assert distance(counts_of(drawn(Ancestral(200), 20_000)), DATA) < 0.03
    single = torch.einsum("s,slk->lk", DATA, torch.nn.functional.one_hot(STATES, K).double())
    independent = single[torch.arange(3), STATES].prod(-1)  # what one call can do, whatever the sampler
    for one_call in (Ancestral(1), FirstHitting(1), LowestEntropy(1)):
        assert chi_square_p_value(counts_of(drawn(one_call, 20_000)), independent) > 1e-4


@pytest.mark.parametrize("calls", [2, 3])
@pytest.mark.parametrize(
    ("noise", "name"), [(MASKS, name) for name in ABSORBING] + [(ContinuousUniformNoise(K), name) for name in UNIFORM]
)
def test_samplers_draw_from_the_distribution_that_enumeration_gives(noise: NoiseProcess, name: str, calls: int) -> None:
    space = Space(DATA, K, 3, noise)
    p = (ABSORBING if noise is MASKS else UNIFORM)[name](space, calls)
    assert float(p.sum()) == pytest.approx(1)
    p = p[space.code(STATES)]  # nothing is masked any more
    assert float(p.sum()) == pytest.approx(1)

    def exact(z: Tensor, t: Tensor) -> Tensor:
        if noise is MASKS:
            return exact_masked(z, t)
        return space.prediction(float(t[0])).clamp(min=1e-300).log()[space.code(z)]

    generator, num = torch.Generator().manual_seed(0), 20_000
    z = noise.draw_prior((num, 3), torch.device("cpu"), generator=generator)
    x = last(made(name, calls).chain(Predictor(exact), noise, z, generator=generator))
    assert chi_square_p_value(counts_of(x), p) > 1e-4
    assert chi_square_p_value(counts_of(x), torch.roll(p, 1)) < 1e-4  # the test can fail


@pytest.mark.parametrize(
    ("noise", "name"), [(MASKS, "spread"), (MASKS, "ancestral"), (ContinuousUniformNoise(K), "ancestral")]
)
def test_known_positions_give_the_distribution_that_enumeration_gives(noise: NoiseProcess, name: str) -> None:
    """Exact with masks and one position per call; with uniform noise an approximation, whose error is known."""
    space = Space(DATA, K, 3, noise, known=(-1, 2, -1))
    calls = 2 if name == "spread" else 3
    p = (ABSORBING if noise is MASKS else UNIFORM)[name](space, calls)
    assert (space.distance(p) < 1e-9) == (name == "spread")

    def exact(z: Tensor, t: Tensor) -> Tensor:
        if noise is MASKS:
            return exact_masked(z, t)
        return space.prediction(float(t[0])).clamp(min=1e-300).log()[space.code(z)]

    generator, num = torch.Generator().manual_seed(0), 20_000
    known = torch.tensor([-1, 2, -1]).expand(num, -1)
    z = noise.draw_prior((num, 3), torch.device("cpu"), generator=generator)
    x = last(made(name, calls).chain(Predictor(exact), noise, z, known=known, generator=generator))
    p = p[space.code(STATES)]
    kept = p > 0
    assert chi_square_p_value(counts_of(x)[kept], p[kept]) > 1e-4
    assert float(counts_of(x)[~kept].sum()) == 0


def test_spread_samples_are_closer_to_the_data_than_ancestral_ones() -> None:
    """Where neighbours depend on each other more than distant positions do."""
    for noise, table in ((AbsorbingNoise(2), ABSORBING), (ContinuousUniformNoise(2), UNIFORM)):
        space = Space(markov_data(4, 0.7), 2, 4, noise)
        ancestral, spread = (space.distance(table[name](space, 3)) for name in ("ancestral", "spread"))
        assert spread < 0.8 * ancestral
    counts = counts_of(drawn(Spread(), 20_000))
    assert chi_square_p_value(counts, DATA) > 1e-4  # one position per call is exact


@pytest.mark.parametrize("name", ["first-hitting", "ancestral"])
def test_known_positions_stay_and_the_others_follow_their_conditional(name: str) -> None:
    known = torch.tensor([-1, 2, -1]).expand(20_000, -1)
    sampler = FirstHitting() if name == "first-hitting" else Ancestral(300)
    x = drawn(sampler, 20_000, known)
    assert bool((x[:, 1] == 2).all())
    conditional = torch.where(STATES[:, 1] == 2, DATA, 0.0)
    kept = conditional > 0
    assert chi_square_p_value(counts_of(x)[kept], (conditional / conditional.sum())[kept]) > 1e-4


@pytest.mark.parametrize("noise", [MASKS, ContinuousUniformNoise(K)])
def test_a_gibbs_step_leaves_the_distribution_as_it_is(noise: NoiseProcess) -> None:
    """One position at a time, with the exact network, at the noise of time t."""
    generator, num, t = torch.Generator().manual_seed(0), 20_000, 0.4
    k = noise.num_input_classes
    every = all_events(k, (3,))
    marginal = noise.marginal(STATES, torch.full((len(STATES),), t))
    each = torch.stack([marginal[:, torch.arange(3), z] for z in every], dim=1)  # (S, Z, L)
    p = DATA @ each.prod(-1)
    others = each.prod(-1, keepdim=True) / each.clamp(min=1e-300)
    onehot = torch.nn.functional.one_hot(STATES, K).double()
    table = torch.einsum("s,szl,slk->zlk", DATA, others, onehot).clamp(min=1e-300).log()  # p(x_0 | x_t elsewhere)
    code = torch.tensor([k * k, k, 1])

    def exact(z: Tensor, time: Tensor) -> Tensor:
        return exact_masked(z, time) if noise is MASKS else table[(z * code).sum(1)]

    z = every[torch.multinomial(p, num, replacement=True, generator=generator)]
    after = corrected(Predictor(exact), noise, z, t, None, generator)
    assert bool(((after != z).sum(1) <= 1).all())
    assert bool((after != z).any())
    counts = torch.bincount((after * code).sum(1), minlength=len(every)).double()
    assert chi_square_p_value(counts, p) > 1e-4


def test_a_network_without_time_is_not_called_while_nothing_changes() -> None:
    seen: list[int] = []

    def predict(z: Tensor, t: Tensor) -> Tensor:
        seen.append(len(z))
        return exact_masked(z, t)

    with watching(Watcher()) as watcher:
        z = MASKS.draw_prior((10, 3), torch.device("cpu"))
        last(Ancestral(500).chain(Predictor(predict, reads_time=False), MASKS, z))
    assert sum(seen) == watcher.network_calls
    assert watcher.network_calls <= 10 * 4  # at most once for each position that was shown, and once at first
    with watching(Watcher()) as watcher:
        last(Corrected(8).chain(Predictor(exact_masked), MASKS, z))
    assert watcher.network_calls == 10 * 8


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: drawn(FirstHitting(4), 2), "between 1 and 3, one for each free position; got 4"),
        (lambda: drawn(FirstHitting(0), 2), "between 1 and 3"),
        (lambda: last(FirstHitting().chain(predictor(), NOISE, torch.zeros(1, L, dtype=torch.long))), "has no mask"),
        (lambda: drawn(Corrected(1), 2), "needs `steps` of at least 2, got 1"),
        (lambda: drawn(Corrected(), 2), "needs `steps` of at least 2, got None"),
    ],
)
def test_what_cannot_be_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_ends_in_classes(name: str) -> None:
    assert drawn(made(name, 3), 50).max() < K


@pytest.mark.parametrize("noise", [MASKS, ContinuousUniformNoise(K), UniformNoise(K, cosine_schedule(12))])
@pytest.mark.parametrize("calls", [2, 3, 4, 5, 8, 11])
def test_a_corrected_sampler_makes_exactly_as_many_calls_as_it_is_given(noise: NoiseProcess, calls: int) -> None:
    seen: list[int] = []

    def predict(z: Tensor, t: Tensor) -> Tensor:
        seen.append(len(z))
        return torch.zeros(*z.shape, K)

    z = noise.draw_prior((4, 6), torch.device("cpu"))
    with watching(Watcher()) as watcher:
        x = last(Corrected(calls).chain(Predictor(predict), noise, z))
    assert seen == [4] * calls
    assert watcher.network_calls == 4 * calls
    assert int(x.max()) < K


def test_the_calls_of_a_whole_chain() -> None:
    """What `whole_calls` says is what the sampler does when it is left to itself."""
    steps, masks = UniformNoise(K, cosine_schedule(7)), AbsorbingNoise(K, Schedule(linear, 7))
    expected = {
        "ancestral": (7, 7, None, None),
        "corrected": (13, 13, None, None),
        "spread": (7, 5, 5, None),
        "first-hitting": (None, 5, 5, None),
        "entropy": (None, 5, 5, None),
        "confidence": (None, 5, 5, None),
        "margin": (None, 5, 5, None),
        "entropy-bounded": (None, 5, 5, None),
    }
    for index, noise in enumerate((steps, masks, MASKS, ContinuousUniformNoise(K))):
        assert set(suitable_samplers(noise)) == set(ABSORBING if noise.mask is not None else UNIFORM)
        assert default_sampler(noise) == ("spread" if noise is MASKS else "ancestral")
        for name in suitable_samplers(noise):
            whole = SAMPLERS[name].whole_calls(noise, 5)
            assert whole == expected[name][index]
            if whole is not None:
                z = noise.draw_prior((3, 5), torch.device("cpu"))
                with watching(Watcher()) as watcher:
                    last(made(name).chain(Predictor(lambda z, t: torch.zeros(*z.shape, K)), noise, z))
                bounded = name == "entropy-bounded"  # these are the most calls that it makes
                assert watcher.network_calls <= 3 * whole if bounded else watcher.network_calls == 3 * whole
