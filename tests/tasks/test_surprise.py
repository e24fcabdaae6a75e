"""Bits of examples and of their positions."""

import math

import pytest
import torch
from contracts import all_events
from torch import nn

import unordinal
from unordinal.diffusion.absorbing import MaskCountNoise
from unordinal.models.autoregressive import AutoregressiveModel
from unordinal.models.diffusion import Diffusion
from unordinal.nets.classes import ClassTransformer
from unordinal.nets.sequence import DenoisingTransformer
from unordinal.tasks.surprise import bits_of, order_1_bits, typical_bits, xz_bits


def causal_model(length: int = 8) -> AutoregressiveModel:
    torch.manual_seed(0)
    model = AutoregressiveModel(ClassTransformer(3, width=8, num_blocks=1, num_heads=1), event_shape=(length,))
    nn.init.normal_(model.net.out.weight)
    return model.eval()


@torch.no_grad()
def test_positions_sum_to_the_whole_whatever_the_lengths() -> None:
    model = causal_model()
    examples = [torch.randint(3, (length,)) for length in (1, 5, 8, 5, 3)]
    for x, found in zip(examples, bits_of(model, examples), strict=True):
        exact = -float(model.log_prob(x.unsqueeze(0))) / math.log(2)
        assert found.bits == pytest.approx(exact, rel=1e-5)
        assert found.error is None
        assert found.positions is not None
        assert sum(found.positions) == pytest.approx(exact, rel=1e-5)
        assert len(found.positions) == found.num_symbols == len(x)


@torch.no_grad()
def test_long_examples_are_scored_in_windows_with_context() -> None:
    model = causal_model(8)
    x = torch.randint(3, (21,))
    (found,) = bits_of(model, [x])
    assert found.positions is not None
    p = model.stepper.log_probs(x[:8].unsqueeze(0))[0]
    for place in range(8):
        assert found.positions[place] == pytest.approx(-float(p[place]) / math.log(2), rel=1e-4)
    p = model.stepper.log_probs(x[5:13].unsqueeze(0))[0]  # the next window has three positions of context
    for place in range(8, 13):
        assert found.positions[place] == pytest.approx(-float(p[place - 5]) / math.log(2), rel=1e-4)


@torch.no_grad()
def test_a_bound_has_an_error_and_is_unbiased() -> None:
    torch.manual_seed(0)
    net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    nn.init.normal_(net.out.weight)
    model = Diffusion(net, noise=MaskCountNoise(3), event_shape=(4,))
    x = all_events(3, (4,))[11]
    draws = [bits_of(model, [x], seed=seed)[0] for seed in range(60)]
    mean = sum(d.bits for d in draws) / 60
    spread = torch.tensor([d.bits for d in draws]).std()
    exact = -float(model.elbo(x.expand(20_000, 4)).mean()) / math.log(2)
    assert mean == pytest.approx(exact, abs=4.5 * float(spread) / 60**0.5 + 0.05)
    assert all(d.error is not None and d.error > 0 for d in draws)
    (long,) = bits_of(model, [x.repeat(3)])
    assert long.num_symbols == 12


def test_references() -> None:
    simple, complex_ = torch.zeros(400, dtype=torch.long), torch.randint(27, (400,))
    assert xz_bits(simple) < 0.2 * xz_bits(complex_)
    low, high = order_1_bits([torch.tensor([0, 1] * 50)] * 9 + [torch.tensor([1, 1, 0, 0] * 25)], 2)[-2:]
    assert low < high
    pairs = order_1_bits([torch.tensor([0, 1])], 2)
    assert pairs[0] == pytest.approx(2 * -math.log2(2 / 3))


@torch.no_grad()
def test_typical_bits_are_the_entropy_of_the_model() -> None:
    model = causal_model(4)
    states = all_events(3, (4,))
    log_p = model.log_prob(states).double()
    entropy = -float((log_p.exp() * log_p).sum()) / math.log(2)
    found = [float(typical_bits(model, seed).sum()) for seed in range(20)]
    mean, spread = sum(found) / 20, float(torch.tensor(found).std())
    assert mean == pytest.approx(entropy, abs=4.5 * spread / 20**0.5)


def test_an_empty_example_is_refused() -> None:
    with pytest.raises(ValueError, match="an example without symbols has no bits"):
        bits_of(causal_model(), [torch.zeros(0, dtype=torch.long)])


@torch.no_grad()
def test_bits_are_finite_where_the_log_probability_is() -> None:
    """Logits that differ by 200 give a probability of 0 in float32, and bits that are not infinite."""
    model = causal_model(4)
    model.net.out.bias.copy_(torch.tensor([0.0, 200.0, -200.0]))
    x = torch.tensor([2, 0, 1, 2])
    (found,) = bits_of(model, [x])
    exact = -float(model.log_prob(x.unsqueeze(0))) / math.log(2)
    assert exact > 1000
    assert found.bits == pytest.approx(exact, rel=1e-5)
    assert found.positions is not None
    assert all(math.isfinite(bits) for bits in found.positions)


@torch.no_grad()
def test_the_error_of_a_bound_is_that_of_its_mean() -> None:
    torch.manual_seed(0)
    net = DenoisingTransformer(3, width=8, num_blocks=1, num_heads=1, num_input_classes=4)
    nn.init.normal_(net.out.weight)
    model = Diffusion(net, noise=MaskCountNoise(3), event_shape=(4,))
    found = [bits_of(model, [all_events(3, (4,))[40]], seed=seed)[0] for seed in range(80)]
    spread = float(torch.tensor([f.bits for f in found]).std())
    claimed = sum(f.error or 0.0 for f in found) / 80
    assert claimed > 0.8 * spread  # the draws are spread over the times, so it may be too large


@torch.no_grad()
def test_the_end_of_an_example_counts_in_its_bits() -> None:
    torch.manual_seed(0)
    model = unordinal.arm(3, 6, ends=True)
    nn.init.normal_(model.net.out.weight)  # type: ignore[union-attr, arg-type]
    for x in (torch.tensor([1, 0, 2]), torch.tensor([1, 0, 2, 2, 1, 0])):
        (found,) = bits_of(model, [x])
        assert found.bits == pytest.approx(-float(model.elbo(x.unsqueeze(0))) / math.log(2), rel=1e-5)
        assert found.positions is not None
        assert len(found.positions) == len(x)
