"""The interface of models, on one whose probabilities are known."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from contracts import all_events, chi_square_p_value, frequencies
from torch import Tensor, nn

from unordinal.abilities import TrainingHooks
from unordinal.checks import as_classes, check_classes, sample_shape
from unordinal.model import CategoricalModel, ExactModel, evaluating

P = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]], dtype=torch.float64)  # of each class at each position


class Known(ExactModel):
    """Independent positions with fixed probabilities, under a dropout that would spoil them."""

    def __init__(self, side_multiple: int = 1) -> None:
        super().__init__(3, (2,), side_multiple=side_multiple)
        self.log_p = nn.Parameter(P.log())
        self.dropout = nn.Dropout(0.9)

    def unchecked_log_prob(self, x: Tensor, cond: Tensor | None = None) -> Tensor:
        return self.dropout(self.log_p.expand(len(x), 2, 3)).gather(-1, x.unsqueeze(-1)).sum((1, 2))

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.unchecked_log_prob(x) + (0 if draw is None else draw)

    def sample(
        self,
        num_samples: int,
        *,
        generator: torch.Generator | None = None,
        event_shape: tuple[int, ...] | None = None,
        **settings: Any,
    ) -> Tensor:
        sample_shape(self, num_samples, event_shape, settings)
        return torch.stack([torch.multinomial(p, num_samples, True, generator=generator) for p in P], dim=1)


class Bounded(CategoricalModel):
    """A model that has nothing but what every model must have."""

    def training_loss(self, x: Tensor, draw: Tensor | None = None, *, cond: Tensor | None = None) -> Tensor:
        return -self.elbo(x)

    def elbo(self, x: Tensor, *, cond: Tensor | None = None, generator: torch.Generator | None = None) -> Tensor:
        return torch.full((len(x),), -2.0)

    def sample(self, num_samples: int, **settings: Any) -> Tensor:
        return torch.zeros(num_samples, *self.event_shape, dtype=torch.long)


def test_probability_and_bound_are_one_number_without_dropout() -> None:
    model, x = Known(), all_events(3, (2,))
    expected = (P[0].unsqueeze(1) * P[1]).flatten()  # in the order of `all_events`
    for training in (True, False):
        model.train(training)
        for score in (model.log_prob, model.elbo):
            torch.testing.assert_close(score(x).exp(), expected)
        assert model.training is training
        assert model.dropout.training is training
    torch.testing.assert_close(model.bits_per_dim(x), -expected.log2() / 2)
    torch.testing.assert_close(model.log_prob(x.to(torch.uint8)), expected.log())
    assert model.is_exact
    assert float(model.log_prob(x).detach().exp().sum()) == pytest.approx(1)


def test_samples_follow_the_probabilities() -> None:
    counts = frequencies(Known(), 20_000, seed=0)
    expected = (P[0].unsqueeze(1) * P[1]).flatten()
    assert chi_square_p_value(counts, expected) > 1e-4
    assert chi_square_p_value(counts, expected.roll(1)) < 1e-4  # the test can fail


def test_calling_a_model_is_its_training_loss() -> None:
    model, x = Known().eval(), all_events(3, (2,))
    torch.testing.assert_close(model(x), -model.log_prob(x))
    torch.testing.assert_close(model(x, torch.ones(9)), 1 - model.log_prob(x))


def test_bits_of_a_bound_are_per_position() -> None:
    x = torch.zeros(5, 4, 6, dtype=torch.long)
    torch.testing.assert_close(Bounded(2, (4, 6)).bits_per_dim(x), torch.full((5,), 2 / (24 * math.log(2))))


def test_a_model_needs_two_classes() -> None:
    assert not Bounded(3, (2,)).is_exact
    with pytest.raises(ValueError, match="at least 2 classes, and each column at least 1; got 1"):
        Bounded(1, (2,))


@pytest.mark.parametrize("values", [[[0, 1], [2, -1]], ((0, 1), (2, -1)), np.array([[0, 1], [2, -1]])])
def test_lists_and_arrays_become_tensors(values: Any) -> None:
    assert torch.equal(as_classes(values, "known"), torch.tensor([[0, 1], [2, -1]]))
    given = torch.tensor([1])
    assert as_classes(given, "known") is given


def test_an_array_that_cannot_be_written_to_is_taken_without_a_warning() -> None:
    values = np.arange(3)
    values.flags.writeable = False
    assert as_classes(values, "known").tolist() == [0, 1, 2]


@pytest.mark.parametrize("values", [[[0, 1], [2]], [[0], 1], "ab", object(), [None, 1], {"a": 1}])
def test_what_is_no_array_is_refused_in_one_line(values: Any) -> None:
    with pytest.raises(ValueError, match="`known` must be an array of integer classes, or lists of equal") as error:
        as_classes(values, "known")
    assert "\n" not in str(error.value)


def test_known_positions_are_expanded_and_checked() -> None:
    model, shape = Known(), torch.Size((2,))
    assert model.checked_known([1, -1], 3, shape).tolist() == [[1, -1]] * 3
    each = [[1, -1], [-1, 2], [-1, -1]]
    assert model.checked_known(np.array(each, np.int8), 3, shape).tolist() == each
    assert model.checked_known(each, 3, shape).dtype == torch.int64
    for wrong, message in (
        ([1, -1, 0], r"integers of shape \(2,\) or \(3, 2\), got torch.int64 of shape \(3,\)"),
        ([1.0, -1.0], "integers of shape"),
        ([3, -1], "class 3; expected 0 to 2, or -1 where it is free"),
        ([-2, -1], "class -2"),
        ([[1, -1], [1, -1], [1, 1]], "leaves nothing free"),
    ):
        with pytest.raises(ValueError, match=message):
            model.checked_known(wrong, 3, shape)


def test_hooks_do_nothing_unless_a_model_has_its_own() -> None:
    hooks = Bounded(3, (2,)).hooks
    assert type(hooks) is TrainingHooks
    hooks.initialise(torch.zeros(1, 2))
    hooks.progressed(0.5)
    hooks.observe(None, torch.zeros(1))
    hooks.compile()
    assert hooks.draw(3) is None
    assert hooks.state() == {}
    hooks.restore({})


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(2, 2), "dtype torch.float32; expected integer classes"),
        (torch.zeros(2, 2, dtype=torch.bool), "dtype torch.bool; expected integer classes"),
        (torch.zeros(2, 2, dtype=torch.complex64), "dtype torch.complex64"),
        (torch.zeros(2, dtype=torch.long), r"shape \(2,\); expected \(batch, 2\)"),
        (torch.zeros(0, 2, dtype=torch.long), r"shape \(0, 2\); expected \(batch, 2\)"),
        (torch.full((2, 2), 3), "class 3, but num_classes=3; was it encoded with this model's vocabulary"),
        (torch.tensor([[0, 1], [-1, 9]]), "class -1, but num_classes=3"),
    ],
)
def test_what_is_not_this_models_data_is_refused(x: Tensor, message: str) -> None:
    for score in (Known().log_prob, Known().elbo, Known().bits_per_dim):
        with pytest.raises(ValueError, match=message):
            score(x)
    with pytest.raises(ValueError, match=message):
        check_classes(Known(), x)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_samples": 0}, "`num_samples` must be a whole number of at least 1, got 0"),
        ({"num_samples": 1, "event_shape": (2, 2)}, r"cannot have shape \(2, 2\); the model's is \(2,\)"),
        ({"num_samples": 1, "event_shape": (0,)}, r"cannot have shape \(0,\)"),
        ({"num_samples": 1, "event_shape": (3,)}, r"sides that are multiples of 2, got \(3,\)"),
        ({"num_samples": 1, "steps": 4}, "sampling from Known has no setting steps"),
        ({"num_samples": 1, "steps": 4, "prompt": "x"}, "sampling from Known has no setting steps, prompt"),
    ],
)
def test_impossible_samples_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Known(side_multiple=2).sample(**settings)


def test_examples_of_another_size_must_fit_the_network() -> None:
    model = Known(side_multiple=2)
    assert sample_shape(model, 1, (6,), {}) == (6,)
    assert sample_shape(model, 1, None, {}) == (2,)
    check_classes(model, torch.zeros(1, 4, dtype=torch.long))
    with pytest.raises(ValueError, match=r"multiples of 2, got \(3,\)"):
        check_classes(model, torch.zeros(1, 3, dtype=torch.long))


def test_evaluating_is_over_even_after_an_error() -> None:
    model = Known()

    def broken() -> None:
        with evaluating(model):
            assert not model.dropout.training
            raise RuntimeError("on the way")

    with pytest.raises(RuntimeError, match="on the way"):
        broken()
    assert model.dropout.training
