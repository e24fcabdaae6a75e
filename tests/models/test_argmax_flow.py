"""Argmax flows on spaces small enough to enumerate: P(x) by quadrature or long IWBO, bounds below it, samples."""

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from contracts import (
    Enumerated,
    all_events,
    check_bounds_are_ordered,
    check_probabilities_and_samples,
    chi_square_p_value,
)
from torch import nn

from unordinal.data.spec import DataSpec
from unordinal.errors import NotANumberError
from unordinal.flows.bijection import Chain
from unordinal.flows.density import ConditionalNormal, Flow, StandardLogistic, StandardNormal
from unordinal.flows.reshape import Reversal
from unordinal.models.argmax_flow import ArgmaxFlow, InvalidSamplesError
from unordinal.models.bound import importance_bound
from unordinal.nets.settings import LSTM, DenseNet, Transformer
from unordinal.progress import Watcher, watching
from unordinal.recipes.argmax_flow import ArgmaxFlowSettings, SurjectionName
from unordinal.recipes.settings import CouplingLayers, Levels, MapInverse, Mixture, SequenceInverse
from unordinal.surjections.cartesian import BinaryProduct
from unordinal.surjections.rounding import OneHotRounding

K, L = 3, 2
REVERSED = Flow(Chain([Reversal()]), StandardNormal((2, 3)))
MAP = (2, 2)  # of two classes: sixteen maps
AR, COUPLING, INVERSE = Mixture(LSTM(8, 1), 2, 4), CouplingLayers(LSTM(8, 1), 2, 2), SequenceInverse(4)
TRANSFORMER = Transformer(8, 1, num_heads=2)
LEVELS, MAP_INVERSE = Levels(DenseNet(6, 2), 2, 1), MapInverse(DenseNet(4, 1), DenseNet(4, 1), 2)
WAYS: tuple[SurjectionName, ...] = (
    "binary",
    "softplus",
    "gumbel",
    "gumbel-threshold",
    "round-uniform",
    "round-variational",
)
CASES: dict[str, ArgmaxFlowSettings] = {
    **{f"{way} ar": ArgmaxFlowSettings(AR, INVERSE, way) for way in WAYS},
    **{f"{way} coupling": ArgmaxFlowSettings(COUPLING, INVERSE, way) for way in WAYS},
    "softplus base 2 ar": ArgmaxFlowSettings(AR, INVERSE, "softplus", 2),
    "gumbel-threshold base 2 coupling": ArgmaxFlowSettings(
        COUPLING, SequenceInverse(4, num_flows=1), "gumbel-threshold", 2
    ),
    "binary ar transformer": ArgmaxFlowSettings(replace(AR, net=replace(TRANSFORMER, conv=3)), INVERSE),
    "softplus coupling transformer": ArgmaxFlowSettings(replace(COUPLING, net=TRANSFORMER), INVERSE, "softplus"),
    "softplus noise flows": ArgmaxFlowSettings(AR, SequenceInverse(4, num_flows=2), "softplus"),
    "ordinal": ArgmaxFlowSettings(AR, INVERSE, "ordinal"),
    **{f"maps {way}": ArgmaxFlowSettings(LEVELS, MAP_INVERSE, way) for way in WAYS[1:]},
    "maps softplus mixtures": ArgmaxFlowSettings(replace(LEVELS, num_mixtures=2), MAP_INVERSE, "softplus"),
}


def spec_of(name: str) -> DataSpec:
    return DataSpec("tiny", 2, MAP) if name.startswith("maps") else DataSpec("tiny", K, (L,))


@functools.cache
def enumerated(name: str) -> Enumerated:
    torch.manual_seed(1)
    return Enumerated.trained(CASES[name].build(spec_of(name)))


def made(name: str) -> ArgmaxFlow:
    model = enumerated(name).model
    assert isinstance(model, ArgmaxFlow)
    return model


@pytest.mark.parametrize("name", CASES)
def test_probabilities_sum_to_one_minus_the_invalid_mass_and_samples_follow_them(name: str) -> None:
    check_probabilities_and_samples(enumerated(name))


@pytest.mark.parametrize("name", CASES)
def test_elbo_is_below_iwbo_is_below_log_p_in_the_mean(name: str) -> None:
    check_bounds_are_ordered(enumerated(name))


def test_p_of_x_by_quadrature() -> None:
    """One position, two classes, two reals: P(x) as the integral of the density over x's half plane."""
    torch.manual_seed(0)
    model = ArgmaxFlowSettings(AR, INVERSE, "softplus").build(DataSpec("tiny", 2, (1,)))
    for parameter in model.parameters():
        parameter.data += 0.03 * torch.randn_like(parameter)
    model = model.double().eval()
    side = torch.linspace(-40, 40, 801, dtype=torch.float64)
    v = torch.cartesian_prod(side, side).unsqueeze(1)  # (N, L = 1, C = 2)
    with torch.no_grad():
        mass = torch.cat([model.density.log_prob(part).exp() for part in v.split(500_000)]) * (side[1] - side[0]) ** 2
        on_the_line = (v[:, 0, 0] == v[:, 0, 1]).double() * 0.5  # half a cell on either side
        chosen = model.surjection.quantize(v)[:, 0]
        p = torch.stack([(mass * ((chosen == x).double() - on_the_line * (chosen == x))).sum() for x in range(2)])
        p[1] += (mass * on_the_line).sum()  # argmax gives ties to the first
        log_p, variance = importance_bound(model, torch.tensor([[0], [1]]), 200_000, rows=50_000)
    assert abs(float(p.sum()) - 1) < 0.02  # the density's tails reach beyond the grid
    assert bool(((log_p.exp() - p).abs() < 5 * variance.sqrt() * p + 0.02).all())


def test_a_binary_flow_of_independent_normals_is_exactly_uniform() -> None:
    """A case with a closed form: signs of standard normals are fair coins, P(x) = 2^-bits."""
    model = ArgmaxFlow(BinaryProduct(4, StandardLogistic((L, 2))), StandardNormal((L, 2)), event_shape=(L,)).double()
    events = all_events(4, (L,))
    torch.manual_seed(0)
    with torch.no_grad():
        log_p, variance = importance_bound(model, events, 50_000, rows=50_000)
    exact = -4 * math.log(2)
    assert bool(((log_p - exact).abs() < 5 * variance.sqrt()).all())
    counts = torch.bincount((model.sample(20_000) * torch.tensor([4, 1])).sum(1), minlength=16).double()
    assert chi_square_p_value(counts, torch.full((16,), 1 / 16, dtype=torch.float64)) > 1e-4


@pytest.mark.parametrize("density", [AR, COUPLING])
@pytest.mark.parametrize("net", [LSTM(8, 1), TRANSFORMER])
def test_samples_have_any_length_and_a_seed_reproduces_them(density: Any, net: Any) -> None:
    model = ArgmaxFlowSettings(replace(density, net=net), INVERSE).build(DataSpec("tiny", K, (4,))).eval()
    first, second = (model.sample(3, generator=torch.Generator().manual_seed(5), event_shape=(7,)) for _ in range(2))
    assert torch.equal(first, second)
    assert first.shape == (3, 7)
    assert not torch.equal(first, model.sample(3, generator=torch.Generator().manual_seed(6), event_shape=(7,)))


def test_progress_is_told_of_every_position() -> None:
    for name in ("binary ar", "binary coupling"):
        told: list[float] = []
        with watching(Watcher(told.append)):
            made(name).sample(3)
        assert sum(told) == pytest.approx(3)
        assert len(told) == (L if name == "binary ar" else 1)


def test_invalid_codes_are_kept_counted_or_drawn_anew() -> None:
    model = ArgmaxFlow(BinaryProduct(3, StandardLogistic((L, 2))), StandardNormal((L, 2)), event_shape=(L,))
    x = model.sample(2000, generator=torch.Generator().manual_seed(0))
    assert abs(float((x == 3).double().mean()) - 0.25) < 0.04  # the fourth code, a quarter of the mass
    assert model.has_invalid_codes
    again = model.sample(300, generator=torch.Generator().manual_seed(0), invalid="resample")
    assert int(again.max()) == 2
    counts = torch.bincount((again * torch.tensor([3, 1])).sum(1), minlength=9).double()
    assert chi_square_p_value(counts, torch.full((9,), 1 / 9, dtype=torch.float64)) > 1e-4
    hopeless = ArgmaxFlow(OneHotRounding(3), StandardNormal((50, 3)), event_shape=(50,))
    with pytest.raises(InvalidSamplesError, match="4 of 4 samples still hold invalid codes after 20 tries"):
        hopeless.sample(4, invalid="resample")


def test_every_parameter_learns() -> None:
    for name in CASES:
        model = copy.deepcopy(made(name)).train()
        model.zero_grad()
        model(all_events(model.num_classes, tuple(model.event_shape))).mean().backward()
        for label, parameter in model.named_parameters():
            assert parameter.grad is not None, (name, label)
            assert bool(torch.isfinite(parameter.grad).all()), (name, label)
            if not (name == "ordinal" and ("before" in label or "head.look" in label)):  # one channel has none before
                assert bool((parameter.grad != 0).any()), (name, label)


def test_scoring_starts_nothing_and_drops_nothing() -> None:
    torch.manual_seed(0)
    density = replace(AR, net=LSTM(8, 1, dropout=0.5))
    model = ArgmaxFlowSettings(density, INVERSE, "gumbel").build(DataSpec("tiny", K, (L,))).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    model.elbo(all_events(K, (L,)))
    model.sample(2)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for kind in (torch.uint8, torch.int32):
        assert bool(torch.isfinite(model.elbo(all_events(K, (L,)).to(kind))).all())


def sized_maps() -> ArgmaxFlow:
    """A flow over maps whose sides must be multiples of 4."""
    density = replace(LEVELS, num_levels=3)
    return ArgmaxFlowSettings(density, MAP_INVERSE, "softplus").build(DataSpec("tiny", 3, (4, 8))).eval()


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("maps")])
def test_maps_have_any_size_and_a_seed_reproduces_them(name: str) -> None:
    model = CASES[name].build(DataSpec("tiny", 3, (4, 8))).eval()
    first, second, other = (
        model.sample(3, generator=torch.Generator().manual_seed(seed), event_shape=(6, 4)) for seed in (5, 5, 6)
    )
    assert first.shape == (3, 6, 4)
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert model.sample(2).shape == (2, 4, 8)


class Broken(StandardNormal):
    """A density that draws something that is no number."""

    def draw(self, shape: tuple[int, ...], generator: torch.Generator | None) -> torch.Tensor:
        return super().draw(shape, generator).fill_(math.nan)


def test_a_nan_is_never_turned_into_a_class() -> None:
    model = ArgmaxFlow(BinaryProduct(4, StandardLogistic((L, 2))), Broken((L, 2)), event_shape=(L,))
    with pytest.raises(NotANumberError, match="drawn NaN, which is no class"):
        model.sample(2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ArgmaxFlow(BinaryProduct(4, StandardLogistic((2,))), StandardNormal((2, 3)), event_shape=(2,)),
            "gives 2 channels for 4 classes, but the density has 3",
        ),
        (lambda: ArgmaxFlowSettings(COUPLING, INVERSE).build(DataSpec("d", 2, (4,))), "at least 2 channels, got 1"),
        (
            lambda: ArgmaxFlow(BinaryProduct(4, StandardLogistic((2,))), REVERSED, event_shape=(2,)),
            "gives 2 channels for 4 classes, but the density has 3",
        ),
        (
            lambda: BinaryProduct(8, ConditionalNormal(nn.Linear(1, 2))).lift(
                torch.zeros(2, 1).long(), torch.ones(2, 1, 1)
            ),
            r"noise of shape \(2, 1, 3\), but its noise has shape \(2, 1, 1\)",
        ),
        (
            lambda: ArgmaxFlowSettings(AR, INVERSE, "foo").build(DataSpec("d", 3, (4,))),  # type: ignore[arg-type]
            r"unknown surjection 'foo' \(known: binary, softplus",
        ),
        (
            lambda: ArgmaxFlowSettings(AR, INVERSE, "softplus", 28).build(DataSpec("d", 27, (4,))),
            "number of classes, 27; got 28",
        ),
        (
            lambda: ArgmaxFlowSettings(AR, INVERSE, "ordinal", 3).build(DataSpec("d", 27, (4,))),
            "one real number per class, got base 3",
        ),
        (lambda: ArgmaxFlowSettings(AR, INVERSE).build(DataSpec("d", 3, (4, 4))), r"shape \(4, 4\)"),
        (
            lambda: ArgmaxFlowSettings(replace(LEVELS, num_levels=3), MAP_INVERSE).build(DataSpec("d", 3, (4, 6))),
            r"multiples of 4; the maps of d are 4 x 6 \(`model.density.num_levels` is 3\)",
        ),
        (lambda: ArgmaxFlowSettings(LEVELS, MAP_INVERSE).build(DataSpec("d", 3, (8,))), "takes maps"),
        (
            lambda: ArgmaxFlowSettings(replace(LEVELS, num_flows=0), MAP_INVERSE, "softplus").build(
                DataSpec("d", 3, (4, 8))
            ),
            "num_flows` must be at least 1, got 0",
        ),
        (
            lambda: ArgmaxFlowSettings(LEVELS, replace(MAP_INVERSE, num_flows=0), "ordinal").build(
                DataSpec("d", 3, (8, 8))
            ),
            "ordinal gives one real number per pixel for 3 classes",
        ),
        (
            lambda: ArgmaxFlowSettings(LEVELS, replace(MAP_INVERSE, num_flows=0)).build(DataSpec("d", 2, (4, 8))),
            "binary gives one real number per pixel for 2 classes",
        ),
        (
            lambda: ArgmaxFlowSettings(LEVELS, MAP_INVERSE, "ordinal").build(DataSpec("d", 3, (8, 8))),
            "`model.inverse.num_flows` must be 0, or more where a digit has at least 2 channels; got 2 for 1",
        ),
        (lambda: sized_maps().sample(1, event_shape=(6, 8)), r"multiples of 4, got \(6, 8\)"),
        (lambda: sized_maps().elbo(torch.zeros(1, 4, 6, dtype=torch.long)), r"multiples of 4, got \(4, 6\)"),
        (lambda: made("binary ar").elbo(torch.full((2, L), 3)), "class 3, but num_classes=3"),
        (lambda: made("binary ar").sample(0), "num_samples` must be a whole number of at least 1"),
        (lambda: made("binary ar").sample(1, event_shape=(0,)), r"cannot have shape \(0,\)"),
        (lambda: made("binary ar").sample(1, steps=3), "has no setting steps"),
        (lambda: made("binary ar").sample(1, **{"invalid": "drop"}), "not 'drop'"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
