"""Sampling times: which models are timed, which draws count, and what is refused."""

import itertools

import pytest
import torch

from unordinal.evaluate import timing
from unordinal.evaluate.timing import Entry, TimedModel, entries_of, time_sampling, timing_of
from unordinal.recipes import configured

FAST = "text8/latent-iaf-scf"


def test_variants_and_numbers_of_steps_take_part_beside_each_other() -> None:
    found = [(e.variant, e.steps) for e in entries_of("text8/multinomial", "tiny", 100)]
    assert found == [("1000 steps", 1000), ("100 steps", 100)]
    assert [e.steps for e in entries_of("text8/multinomial", "tiny", 1000)] == [1000]
    flows = entries_of("text8/discrete-flow", "tiny", 100)
    assert [(e.variant, e.steps, e.model.flow) for e in flows] == [  # type: ignore[attr-defined]
        ("autoregressive", None, "ar"),
        ("bipartite", None, "bipartite"),
    ]
    (plain,) = entries_of("text8/arm", "tiny", 100)
    assert plain == Entry("text8/arm", "", configured("text8/arm").model, None)


@pytest.mark.parametrize(
    ("preset", "steps", "message"),
    [
        ("text8/multinomial", 1001, "`steps` must be between 1 and the 1000 of text8/multinomial, got 1001"),
        ("text8/multinomial", 0, "got 0"),
        ("toy/eight-gaussians", 100, "timed for texts"),
        ("text8/argmx-ar", 100, "did you mean text8/argmax-ar"),
    ],
)
def test_what_cannot_be_timed_is_refused(preset: str, steps: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        entries_of(preset, "tiny", steps)


def test_nothing_to_time_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one preset and one length"):
        time_sampling([], size="tiny", lengths=[8], repeats=1)


def test_the_middle_the_mean_and_the_spread_are_those_of_the_seconds() -> None:
    entry = Entry("text8/arm", "", configured("text8/arm").model)
    row = timing_of(TimedModel(entry, 8, 10, lambda: None, [1.0, 2.0, 6.0]), "tiny")
    assert (row.median, row.mean, row.repeats) == (2.0, 3.0, 3)
    assert row.deviation == pytest.approx(7**0.5)
    assert row.paper is None
    alone = timing_of(TimedModel(entry, 256, 10, lambda: None, [1.0]), "paper")
    assert alone.deviation is None
    assert alone.paper == "35.5 (of 288 characters)"
    assert timing_of(TimedModel(entry, 255, 10, lambda: None, [1.0]), "paper").paper is None


def test_the_first_round_warms_up_unless_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock on which the draws of a model take known seconds."""
    for first, counted in ((9.0, [1.0, 1.0]), (11.0, [11.0, 1.0])):
        ticks = iter(itertools.accumulate([0.0, first, 0.0, 1.0, 0.0, 1.0]))
        monkeypatch.setattr(timing.time, "perf_counter", lambda ticks=ticks: next(ticks))
        made: list[TimedModel] = []

        def build(entry: Entry, length: int, seed: int, made: list[TimedModel] = made) -> TimedModel:
            made.append(TimedModel(entry, length, 1, lambda: None))
            return made[-1]

        monkeypatch.setattr(timing, "build_timed_model", build)
        (row,), is_whole = time_sampling([FAST], size="tiny", lengths=[8], repeats=2)
        assert is_whole
        assert made[0].seconds == counted
        assert row.mean == sum(counted) / 2


def test_every_length_is_sampled_and_the_callers_random_numbers_left_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    rows, is_whole = time_sampling([FAST], size="tiny", lengths=[8, 16], repeats=2)
    assert is_whole
    assert [(r.length, r.repeats) for r in rows] == [(8, 2), (16, 2)]
    assert all(r.median > 0 for r in rows)
    assert rows[0].parameters == rows[1].parameters > 0
    assert torch.equal(before, torch.get_rng_state())


def test_an_interruption_keeps_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = itertools.count()

    def draw() -> None:
        if next(calls) == 3:  # both have warmed up, and the first was measured once
            raise KeyboardInterrupt

    monkeypatch.setattr(timing, "build_timed_model", lambda entry, length, seed: TimedModel(entry, length, 1, draw))
    rows, is_whole = time_sampling([FAST], size="tiny", lengths=[8, 16], repeats=2)
    assert not is_whole
    assert [(r.length, r.repeats) for r in rows] == [(8, 1)]
