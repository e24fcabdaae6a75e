"""Scores of a split against the bound taken by enumeration, and importance-weighted bounds in bounded memory."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from blocks import built, examples
from contracts import TableNet, all_events, analytic_elbo
from torch import Tensor, nn

from unordinal.data.splits import Split
from unordinal.diffusion.absorbing import AbsorbingNoise
from unordinal.diffusion.continuous import ContinuousUniformNoise
from unordinal.diffusion.ordered import EntropyBounded, Ordered
from unordinal.diffusion.schedules import cosine_schedule
from unordinal.diffusion.uniform import UniformNoise
from unordinal.evaluate.likelihood import Evaluate, score_split
from unordinal.flows.density import StandardLogistic, StandardNormal
from unordinal.models.argmax_flow import ArgmaxFlow
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.blockwise import BlockDiffusion
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.sequence import DenoisingTransformer
from unordinal.numerics import standard_error
from unordinal.surjections.cartesian import BinaryProduct

K, L, T = 3, 2, 4


def tiny_model() -> Diffusion:
    return Diffusion(TableNet(K, L, T), noise=UniformNoise(K, cosine_schedule(T)), event_shape=(L,), times="uniform")


def events(copies: int) -> Split:
    return Split(np.tile(all_events(K, (L,)).numpy().astype(np.uint8), (copies, 1)))


def exact_bits() -> float:
    with torch.no_grad():
        return float(-analytic_elbo(tiny_model()).mean() / (math.log(2) * L))


@pytest.mark.parametrize(
    ("times", "repeats"),
    [("all", 1), pytest.param("all", 3, marks=pytest.mark.slow), ("stratified", 1), ("stratified", 3)],
)
def test_scores_are_unbiased_and_their_error_honest(times: str, repeats: int) -> None:
    split, model = events(20), tiny_model()
    asked = [Evaluate(times=times, repeats=repeats, seed=seed) for seed in range(60)]  # type: ignore[arg-type]
    scores = [score_split(model, split, each) for each in asked]
    values = np.array([s.bits_per_dim for s in scores])
    spread = values.std(ddof=1)
    assert abs(values.mean() - exact_bits()) < 4.5 * spread / math.sqrt(60)
    claimed = np.mean([s.standard_error for s in scores if s.standard_error is not None])
    assert claimed > 0.8 * spread  # the split's own variation is in it too, so it may be larger, not smaller
    assert scores[0].kind == "elbo"
    assert ("all 4 times" in scores[0].method) == (times == "all")
    assert scores[0].num_examples == 20 * K**L


def test_more_repeats_lower_the_error() -> None:
    split, model = events(20), tiny_model()
    one, four = (
        [score_split(model, split, Evaluate(repeats=r, seed=s)).bits_per_dim for s in range(40)] for r in (1, 4)
    )
    assert np.std(four) < 0.75 * np.std(one)


def test_a_seed_reproduces_and_leaves_the_callers_generator_alone() -> None:
    split, model = events(2), tiny_model()
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, second = (score_split(model, split, Evaluate(seed=1)).bits_per_dim for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.get_rng_state())
    assert score_split(model, split, Evaluate(seed=2)).bits_per_dim != first


def test_standard_error_of_stratified_values_leaves_out_what_the_strata_explain() -> None:
    generator = torch.Generator().manual_seed(0)
    rank = torch.randperm(500, generator=generator)
    noise = torch.randn(500, generator=generator, dtype=torch.float64)
    values = 100 * rank.double() / 500 + noise
    naive, aware = standard_error(values), standard_error(values, rank)
    assert naive is not None
    assert aware is not None
    assert naive > 1
    assert aware == pytest.approx(1 / math.sqrt(500), rel=0.15)
    assert standard_error(values[:1]) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_examples": 0}, "`num_examples` must be a whole number of at least 1, got 0"),
        ({"repeats": 0}, "`repeats` must be a whole number of at least 1, got 0"),
        ({"num_examples": 99}, "`num_examples` is 99, but the test split has only 18"),
        ({"k": 0, "bound": "iwbo"}, "`k` must be a whole number of at least 1, got 0"),
        ({"seed": -1}, "`seed` must be a whole number between 0 and"),
        ({"bound": "elb"}, "`bound` must be one of elbo, iwbo, interval, got 'elb'"),
        ({"times": "some"}, "`times` must be one of stratified, all"),
        ({"repeats": 3, "bound": "iwbo"}, "`repeats` 3 is for the ELBO; with `bound` iwbo give `k`"),
        ({"repeats": 3, "bound": "interval"}, "is for the ELBO; with `bound` interval give `k`"),
        ({"k": 99, "bound": "interval"}, "needs `k` of at least 100"),
        ({"split": "exact", "bound": "interval"}, "leave out `split` exact"),
        ({"order": "margin", "budget": 0.1}, "`budget` 0.1 is for `order` entropy"),
        ({"order": "all-orders", "calls": 2}, "`calls` is for `order` left-to-right"),
        ({"order": "all-orders"}, "is for models of blocks, with `block` of at most 4 positions"),
        ({"in_order": True, "split": "exact"}, "`in_order` is for exact likelihoods of a text"),
        ({"order": "random", "repeats": 2}, "`order` gives an exact likelihood"),
        ({"num_examples": 3, "split": "exact"}, "scores every x; leave out `num_examples` 3"),
        ({"order": "random"}, "`order` is for diffusions with a mask"),
        ({"in_order": True}, "only for a text and a model with a memory"),
    ],
)
def test_impossible_requests_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        score_split(tiny_model(), events(2), Evaluate(**settings))


def test_an_exact_likelihood_leaves_nothing_to_draw() -> None:
    model = AutoregressiveModel(ClassTransformer(K, width=8, num_blocks=1, num_heads=1), event_shape=(L,))
    score = score_split(model, events(2))
    assert (score.kind, score.method) == ("exact", "one pass")
    assert score.per_example is not None
    with torch.no_grad():
        expected = -model.log_prob(all_events(K, (L,))).double().repeat(2) / (math.log(2) * L)
    torch.testing.assert_close(torch.tensor(score.per_example, dtype=torch.float64), expected)
    assert score_split(model, events(2), Evaluate(repeats=1)).bits_per_dim == score.bits_per_dim
    for asked in (Evaluate(repeats=2), Evaluate(bound="iwbo", k=3)):
        with pytest.raises(ValueError, match="likelihood is exact: leave out"):
            score_split(model, events(2), asked)


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(ValueError, match="the val split has no complete example"):
        score_split(tiny_model(), Split(np.zeros((0, L), np.uint8)), split_name="val")


def coins(num_classes: int = 4, length: int = 3) -> ArgmaxFlow:
    """Signs of independent normals: every code has the same probability."""
    bits = (num_classes - 1).bit_length()
    model = ArgmaxFlow(
        BinaryProduct(num_classes, StandardLogistic((length, bits))),
        StandardNormal((length, bits)),
        event_shape=(length,),
    )
    model.register_parameter("any", torch.nn.Parameter(torch.zeros(1)))  # a device to live on
    return model


class Counting(ArgmaxFlow):
    """Notes how many rows each call gets."""

    rows: list[int]

    def log_weight(self, x: Tensor, *, cond: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        self.rows.append(len(x))
        return super().log_weight(x, cond=cond, generator=generator)


def test_iwbo_tightens_towards_the_truth() -> None:
    split = Split(all_events(4, (3,)).numpy().astype(np.uint8))
    scores = [score_split(coins(), split, Evaluate(bound="iwbo", k=k, seed=1)) for k in (1, 10, 1000)]
    elbo = score_split(coins(), split, Evaluate(repeats=30))
    bits = [s.bits_per_dim for s in scores]
    assert bits[0] > bits[1] > bits[2]
    assert bits[2] == pytest.approx(2.0, abs=0.01)  # log2 of 4 codes
    assert abs(bits[0] - elbo.bits_per_dim) < 5 * float(scores[0].standard_error or 0)
    assert [s.kind for s in scores] == ["iwbo-1", "iwbo-10", "iwbo-1000"]
    assert scores[0].nats_per_example == pytest.approx(bits[0] * 3 * math.log(2))


def test_no_call_grows_with_k() -> None:
    model = coins(length=256)
    model.__class__ = Counting
    assert isinstance(model, Counting)
    split = Split(np.zeros((3, 256), np.uint8))
    for k in (10, 1000):
        model.rows = []
        score_split(model, split, Evaluate(bound="iwbo", k=k, batch_size=32))
        assert sum(model.rows) == 3 * k
        assert max(model.rows) <= 32


class Far(StandardNormal):
    """Normals whose mean is 4."""

    def draw(self, shape: tuple[int, ...], generator: torch.Generator | None) -> Tensor:
        return super().draw(shape, generator) + 4

    def log_density(self, v: Tensor) -> Tensor:
        return super().log_density(v - 4)


def test_a_density_that_knows_the_answer_is_scored_at_it() -> None:
    """Normals far on one side: x is certain, and the bound tends to nothing lost."""
    model = ArgmaxFlow(BinaryProduct(2, StandardLogistic((1, 1))), Far((1, 1)), event_shape=(1,))
    split = Split(np.ones((50, 1), np.uint8))
    score = score_split(model, split, Evaluate(bound="iwbo", k=20_000))
    assert abs(score.bits_per_dim) < 0.05


def test_the_likelihood_of_a_sampler_is_exact_and_says_so() -> None:
    net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    model = Diffusion(net, noise=AbsorbingNoise(3), event_shape=(6,))
    nn.init.normal_(net.out.weight)
    split = Split(np.random.default_rng(0).integers(0, 3, (20, 6)).astype(np.uint8))
    found = score_split(model, split, Evaluate(order="margin", calls=3, num_examples=12))
    assert found.kind == "exact (margin, 3 calls)"
    assert "of 8 examples changes with the number of threads" in found.method
    x = split.examples(np.arange(12))
    expected = -float(model.log_prob_of_sampler(x, Ordered(3)).mean()) / (6 * math.log(2))
    assert found.bits_per_dim == pytest.approx(expected, rel=1e-5)
    single = score_split(model, split, Evaluate(order="entropy", num_examples=4))
    assert single.kind == "exact (entropy, one position per call)"
    assert (
        score_split(model, split, Evaluate(order="left-to-right", num_examples=4)).kind == "exact (order left-to-right)"
    )
    for wrong in ("random", "right-to-left", None):
        with pytest.raises(ValueError, match="`calls` is for `order` left-to-right, confidence, entropy and margin"):
            Evaluate(order=wrong, calls=3)


def block_split(block: int) -> tuple[BlockDiffusion, Split, Tensor]:
    """Return a small model of blocks, all of its examples, and their log-probabilities in random order."""
    model, x = built("plain", block), examples("plain")
    with torch.no_grad():
        log_p = model.log_prob_of_random_order(x)
    return model, Split(x.numpy().astype(np.uint8)), log_p


def test_models_without_importance_weights_have_no_interval() -> None:
    model = Diffusion(TableNet(K, L, 0), noise=ContinuousUniformNoise(K), event_shape=(L,))
    with pytest.raises(ValueError, match="Diffusion has no importance weights; leave out `bound` interval"):
        score_split(model, events(1), Evaluate(bound="interval"))


def test_an_interval_holds_the_likelihood_of_the_random_order() -> None:
    model, split, log_p = block_split(3)
    truth = -float(log_p.mean()) / (5 * math.log(2))
    score = score_split(model, split, Evaluate(bound="interval", k=400))
    assert score.kind == "iwbo-400"
    assert score.method == "400 draws per example of a block"
    assert score.least is not None
    assert score.least.bits_per_dim is not None
    assert score.least.bits_per_dim - 1e-3 < truth < score.bits_per_dim + 1e-3
    assert score.bits_per_dim - score.least.bits_per_dim < 0.05
    assert "at least, by an upper bound on the likelihood" in str(score)
    assert score.to_dict()["least"]["num_uneven"] == 0


def test_uneven_draws_give_no_upper_bound() -> None:
    model, split = built("plain", 5), Split(examples("plain").numpy().astype(np.uint8))
    with torch.no_grad():
        for weights in model.parameters():
            weights.mul_(6)  # orders disagree
    score = score_split(model, split, Evaluate(bound="interval", k=100))
    assert score.least is not None
    assert score.least.bits_per_dim is None
    assert score.least.num_uneven > 0
    assert "none, the draws of" in str(score.least)


def test_the_likelihood_of_all_orders_is_that_of_the_random_order() -> None:
    model, split, log_p = block_split(3)
    score = score_split(model, split, Evaluate(order="all-orders"))
    assert score.kind == "exact (random order in each block)"
    assert score.nats_per_example == pytest.approx(-float(log_p.mean()))


def test_a_budget_of_entropy_has_its_own_kind() -> None:
    model, split, _ = block_split(3)
    score = score_split(model, split, Evaluate(order="entropy", budget=0.5))
    assert score.kind == "exact (entropy-bounded, 0.5 nats)"
    with torch.no_grad():
        log_p = model.log_prob_of_sampler(examples("plain"), EntropyBounded(budget=0.5))
    assert score.nats_per_example == pytest.approx(-float(log_p.mean()))
