"""Discrete flows: bijections whatever the weights, exact probabilities, and what straight-through gradients are."""

import pytest
import torch
from contracts import all_events, chi_square_p_value, frequencies
from torch import Tensor, nn

from unordinal.data.spec import DataSpec
from unordinal.models.discrete_flow import DiscreteFlow, ModuloLayer, shifted_back, straight_through, units_of
from unordinal.nets.settings import LSTM, Transformer
from unordinal.progress import Advance
from unordinal.recipes.discrete_flow import DiscreteFlowSettings
from unordinal.recipes.settings import SequenceNet

L = 3
NETS: dict[str, SequenceNet] = {"lstm": LSTM(8, 1), "transformer": Transformer(8, 1, num_heads=2)}
CASES = {
    f"{flow}{' scale' if scale else ''} {net}": DiscreteFlowSettings(NETS[net], flow, scale, num_flows=3)
    for flow in ("ar", "bipartite")
    for scale in (False, True)
    for net in NETS
}


def made(name: str, num_classes: int, seed: int = 0) -> DiscreteFlow:
    torch.manual_seed(seed)
    model = CASES[name].build(DataSpec("tiny", num_classes, (L,)))
    for parameter in model.parameters():
        parameter.data += torch.randn_like(parameter)
    assert isinstance(model, DiscreteFlow)
    return model.double().eval()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("num_classes", [2, 3, 4, 6])
@torch.no_grad()
def test_it_is_a_bijection_whatever_the_weights(name: str, num_classes: int) -> None:
    events = all_events(num_classes, (L,))
    for seed in range(3):
        model = made(name, num_classes, seed)
        u = events
        for layer in model.stack():
            u = layer.noise_of(u)
        assert len(torch.unique(u, dim=0)) == len(events)
        x = u
        for layer in reversed(model.stack()):
            x = layer.inverse(x)
        assert torch.equal(x, events)


@pytest.mark.parametrize("name", CASES)
@torch.no_grad()
def test_probabilities_sum_to_one_and_samples_follow_them(name: str) -> None:
    model, events = made(name, 3), all_events(3, (L,))
    p = model.elbo(events).exp()
    assert abs(float(p.sum()) - 1) < 1e-6
    torch.testing.assert_close(-model.training_loss(events), model.elbo(events), rtol=1e-9, atol=1e-9)
    counts = frequencies(model, 20_000, seed=1)
    assert chi_square_p_value(counts, p) > 1e-4
    assert chi_square_p_value(counts, torch.roll(p, 1)) < 1e-4  # the test can fail
    assert abs(float(model.float().elbo(events).exp().sum()) - 1) < 1e-4


def test_modulo_arithmetic_on_one_hots() -> None:
    for num in (2, 3, 5, 6):
        a, b = torch.cartesian_prod(torch.arange(num), torch.arange(num)).unbind(1)
        hot = [nn.functional.one_hot(v, num).double() for v in (a, b)]
        expected = nn.functional.one_hot((a - b) % num, num).double()
        torch.testing.assert_close(shifted_back(hot[0], hot[1]), expected)
        single = shifted_back(hot[0].float(), hot[1].float())
        torch.testing.assert_close(single, expected.float(), rtol=0, atol=1e-6)
    assert units_of(27) == [s for s in range(27) if s % 3]


class Fixed(ModuloLayer):
    """One place whose location has free logits."""

    def __init__(self, num_classes: int, temperature: float):
        super().__init__(num_classes, has_scale=False, temperature=temperature)
        self.free = nn.Parameter(torch.zeros(num_classes, dtype=torch.float64))

    def logits(self, x: Tensor) -> Tensor:
        return self.free.expand(*x.shape[:2], -1)

    def inverse(self, u: Tensor, advance: Advance | None = None) -> Tensor:
        return self.data_of(u, self.free.expand(*u.shape, -1))


def gradients(start: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """The straight-through gradient of the location's logits, and the exact one of the expected loss under softmax.

    One place, data that are always 1, a base that favours 0: location 1 would match them.
    """
    num, data = 3, torch.tensor([[1]])
    log_base = torch.log_softmax(torch.tensor([2.0, 0.0, -1.0], dtype=torch.float64), -1)
    losses = -log_base[(1 - torch.arange(num)) % num]  # of location j: u = 1 - j
    layer = Fixed(num, temperature)
    layer.free.data = start.double()
    model = DiscreteFlow([layer], num_classes=num, event_shape=(1,)).double()
    model.base.data = log_base.unsqueeze(0)
    model(data).sum().backward()
    assert layer.free.grad is not None
    logits = start.double().requires_grad_()
    (exact,) = torch.autograd.grad((torch.softmax(logits, -1) * losses).sum(), logits)
    return layer.free.grad, exact


def test_the_bias_of_straight_through_gradients() -> None:
    """Measured, not hidden: none for one layer at temperature 1, as large as the gradient itself at 0.1."""
    start = torch.tensor([1.0, 0.2, -0.5])
    ours, exact = gradients(start, 1.0)
    assert float((ours - exact).norm() / exact.norm()) < 1e-9  # the loss is linear in the one-hot
    assert int(ours.argmin()) == 1  # and descent raises the location that helps
    ours, exact = gradients(start, 0.1)
    assert float((ours - exact).norm() / exact.norm()) > 0.5
    ours, exact = gradients(torch.zeros(3), 0.1)  # at equal logits the direction is right, ten times too long
    torch.testing.assert_close(ours, 10 * exact)


def test_two_layers_are_biased() -> None:
    """Each layer sees the other's argmax in place of its spread: benchmarks/straight_through.py has the table."""
    torch.manual_seed(0)
    num, data = 4, torch.tensor([[1]])
    log_base = torch.log_softmax(torch.randn(num, dtype=torch.float64), -1)
    first, second = Fixed(num, 1.0), Fixed(num, 1.0)
    for layer in (first, second):
        layer.free.data.normal_()
    model = DiscreteFlow([first, second], num_classes=num, event_shape=(1,)).double()
    model.base.data = log_base.unsqueeze(0)
    model(data).sum().backward()
    a, b = (layer.free.detach().requires_grad_() for layer in (first, second))
    j, k = torch.meshgrid(torch.arange(num), torch.arange(num), indexing="ij")
    losses = -log_base[(1 - j - k) % num]
    expected = (torch.softmax(a, -1)[:, None] * torch.softmax(b, -1) * losses).sum()
    (exact,) = torch.autograd.grad(expected, a)
    (given,) = torch.autograd.grad(torch.softmax(a, -1) @ losses[:, int(b.argmax())], a)
    assert first.free.grad is not None
    torch.testing.assert_close(first.free.grad, given)
    assert float((first.free.grad - exact).norm() / exact.norm()) > 0.1


def test_a_trained_base_is_kept() -> None:
    model = made("ar lstm", 3)
    before = model.base.detach().clone()
    model.hooks.initialise(all_events(3, (L,)))
    assert torch.equal(model.base, before)


def test_the_loss_is_constant_but_for_jumps() -> None:
    """Its exact gradient to the layers is 0 almost everywhere; straight-through gives a direction all the same."""
    model = made("ar lstm", 3, seed=5).train()
    x = all_events(3, (L,))
    model(x).mean().backward()
    first = model.stack()[0]
    gradient = torch.cat([p.grad.flatten() for p in first.parameters() if p.grad is not None])
    assert bool(torch.isfinite(gradient).all())
    assert float(gradient.norm()) > 0
    with torch.no_grad():
        before = float(model(x).mean())
        for p in first.parameters():
            p.add_(1e-9 * torch.randn_like(p))
        assert float(model(x).mean()) == pytest.approx(before, abs=1e-12)


def test_straight_through_is_the_one_hot_forward() -> None:
    logits = torch.randn(4, 5, requires_grad=True)
    out = straight_through(logits, 0.3)
    torch.testing.assert_close(out, nn.functional.one_hot(logits.argmax(-1), 5).float())
    (gradient,) = torch.autograd.grad((out * torch.arange(5.0)).sum(), logits)
    soft = logits.detach().requires_grad_()
    (expected,) = torch.autograd.grad((torch.softmax(soft / 0.3, -1) * torch.arange(5.0)).sum(), soft)
    torch.testing.assert_close(gradient, expected)


def test_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"the base has shape \(3,\) and cannot draw \(5,\); leave out `length`"):
        made("ar lstm", 3).sample(1, event_shape=(5,))
