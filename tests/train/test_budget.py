"""Budgets in steps, minutes and epochs, and the parts that batches are cut into."""

import pytest

from unordinal.config import ModelSettings, TrainConfig
from unordinal.data.spec import DataSpec
from unordinal.nets.settings import LSTM, Transformer
from unordinal.recipes.argmax_flow import ArgmaxFlowSettings
from unordinal.recipes.arm import ArmSettings
from unordinal.recipes.settings import Mixture, SequenceInverse
from unordinal.train.budget import CPU_PART, LSTM_PART, Budget, parts_of_batch


def test_budgets() -> None:
    assert Budget.of(TrainConfig(epochs=2), 50.5).steps == 101
    assert Budget.of(TrainConfig(epochs=2, steps=7), 50).steps == 7
    timed = Budget.of(TrainConfig(minutes=2), 50)
    assert (timed.steps, timed.seconds) == (None, 120)
    assert timed.fraction(10**6, 30) == pytest.approx(0.25)
    assert timed.fraction(0, 110, reserved=10) == 1
    assert timed.wants_validation(1, 24, validated_at=12)
    assert not timed.wants_validation(1, 23.9, validated_at=12)
    with pytest.raises(ValueError, match="no budget: give `steps` or `minutes`"):
        Budget.of(TrainConfig(), 10)


def test_with_steps_and_minutes_training_ends_with_the_first_that_is_spent() -> None:
    both = Budget.of(TrainConfig(steps=100, minutes=1), 50)
    assert (both.steps, both.seconds, both.validate_every) == (100, 60, 10)
    assert both.fraction(50, 6) == pytest.approx(0.5)
    assert both.fraction(10, 30) == pytest.approx(0.5)
    assert both.fraction(100, 1) == both.fraction(1, 60) == 1


def test_validations_are_a_tenth_of_the_budget_but_at_most_a_thousand_steps_apart() -> None:
    for steps, every in ((95, 10), (5, 1), (50_000, 1000)):
        assert Budget.of(TrainConfig(steps=steps), 10).validate_every == every
    assert Budget.of(TrainConfig(steps=95, validate_every=7), 10).validate_every == 7
    budget = Budget.of(TrainConfig(steps=95), 10)
    assert [step for step in range(1, 96) if budget.wants_validation(step, 0.0, 0.0)] == list(range(10, 96, 10))


def test_a_finished_run_continues_only_with_a_larger_budget() -> None:
    """However long its validations took: minutes and steps are compared with those it had."""
    steps, timed = Budget.of(TrainConfig(steps=10), 1), Budget.of(TrainConfig(minutes=3), 1)
    assert [steps.is_more_than([spent, None]) for spent in (9, 10, 11)] == [True, False, False]
    assert timed.is_more_than([None, 120.0])
    assert not timed.is_more_than([None, 180.0])
    assert timed.is_more_than([10, None])  # from steps to minutes
    assert Budget.of(TrainConfig(steps=10, minutes=3), 1).is_more_than([10, 120.0])


NETWORKS: dict[str, tuple[ModelSettings, int]] = {
    "transformer": (ArmSettings(Transformer(4, 1, num_heads=1)), CPU_PART),
    "lstm": (ArgmaxFlowSettings(Mixture(LSTM(4, 1), 2, 4), SequenceInverse(4)), LSTM_PART),
}


@pytest.mark.parametrize("network", NETWORKS)
def test_batches_are_cut_to_suit_the_network_on_a_cpu_and_left_whole_on_a_gpu(network: str) -> None:
    """Compare with the fewest parts that hold at most the allowed number of symbols each, found by trying all."""
    settings, most = NETWORKS[network]
    for size in (2, 256, 1000, 5000):
        model = settings.build(DataSpec("tiny", 3, (size,)))
        for batch_size in (1, 7, 12, 32, 64):
            config = TrainConfig(batch_size=batch_size)
            fitting = [n for n in range(1, batch_size + 1) if -(-batch_size // n) * size <= most]
            assert parts_of_batch(config, model, "cpu") == (fitting[0] if fitting else batch_size)
            assert parts_of_batch(config, model, "cuda") == 1
        assert parts_of_batch(TrainConfig(batch_size=8, accumulate=4), model, "cpu") == 4
