"""The work of a single job."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from unordinal.evaluate.likelihood import Evaluate
from unordinal.reproduce import work
from unordinal.reproduce.jobs import TIMES, Job
from unordinal.reproduce.work import DONE, KEPT, STALE, Place, do, score_within

TOY = Job(
    "toy", "scores", "toy/discrete-flow", "toy", "eight-gaussians", "tiny", 0.02, settings={"net.width": 8}, shown=True
)


def test_a_job_is_done_once_and_kept(tmp_path: Path) -> None:
    place = Place(tmp_path)
    assert do(TOY, place) == DONE
    found = place.found("toy")
    assert found is not None
    assert found["scores"]["elbo"]["kind"] == "exact"
    assert found["trained"]["steps"] > 0
    assert set(found["shown"]["probabilities"]) == {"data", "model", "samples"}
    assert do(TOY, place) == KEPT
    assert place.found("toy") == found


def test_results_of_other_settings_or_code_are_stale_and_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(tmp_path)
    do(TOY, place)
    before = place.found("toy")
    assert do(replace(TOY, settings={"net.width": 12}), place) == STALE
    assert do(replace(TOY, minutes=0.03), place) == STALE
    with monkeypatch.context() as patch:
        patch.setattr(work, "code_of", lambda _model: "other")
        assert do(TOY, place) == STALE
    assert place.found("toy") == before
    assert do(TOY, place) == KEPT


def test_a_result_that_was_cut_short_is_made_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    do(TOY, place)
    place.result("toy").write_text('{"job": ')
    assert place.found("toy") is None
    assert do(TOY, place) == DONE


def test_the_importance_weighted_bound_is_added_to_a_result_without_it(tmp_path: Path) -> None:
    small = {"model.density.net.width": 8, "model.density.num_flows": 1, "model.inverse.num_flows": 1, "batch_size": 2}
    job = Job("maps", "scores", "cityscapes/argmax-softplus", "cityscapes", "streets", "tiny", 0.02, settings=small)
    place = Place(tmp_path)
    assert do(job, place) == DONE
    without = place.found("maps")
    assert without is not None
    assert set(without["scores"]) == {"elbo"}
    assert do(replace(job, iwbo=True), place) == DONE
    found = place.found("maps")
    assert found is not None
    assert found["scores"]["iwbo"]["num_examples"] == work.IWBO_MAPS
    assert found["scores"]["iwbo"]["kind"].startswith("iwbo")
    assert found["trained"]["steps"] == without["trained"]["steps"]  # it was not trained again
    assert do(job, place) == KEPT


@pytest.mark.parametrize(("seconds", "expected"), [(0.0, 8), (100.0, 1000)])
def test_as_many_examples_are_scored_as_there_is_time_for(seconds: float, expected: int) -> None:
    class Found:
        def __init__(self, asked: Evaluate) -> None:
            self.num, self.seconds = asked.num_examples, 0.01 * (asked.num_examples or 0)

    class Scored:
        def scored(self, asked: Evaluate, _data: Any) -> Any:
            return Found(asked)

    class Split:
        test = range(1000)

    run: Any = Scored()
    data: Any = Split()
    assert score_within(run, data, Evaluate(split="test"), seconds).num == expected  # type: ignore[attr-defined]


def test_sampling_times_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Timing:
        def __init__(self) -> None:
            self.preset, self.variant, self.mean, self.deviation = "text8/arm", "", 0.5, None

    calls: list[Any] = []

    def timed(presets: list[str], **settings: Any) -> tuple[list[Timing], bool]:
        calls.append((presets, settings))
        return [Timing()], True

    monkeypatch.setattr("unordinal.evaluate.timing.time_sampling", timed)
    job = Job(TIMES, "times", "sampling-time", "text8", "", "tiny", None)
    assert do(job, Place(tmp_path)) == DONE
    assert do(job, Place(tmp_path)) == KEPT
    assert do(replace(job, size="small"), Place(tmp_path)) == STALE
    assert len(calls) == 1
    assert calls[0][1]["lengths"] == [256]


def test_a_results_file_alone_is_continued(tmp_path: Path) -> None:
    first, second = Place(tmp_path / "first"), Place(tmp_path / "second")
    do(TOY, first)
    second.folder.mkdir()
    (second.folder / "results.json").write_text(json.dumps({"results": {"toy": first.found("toy")}}))
    second.restore()
    assert second.found("toy") == first.found("toy")
    assert do(TOY, second) == KEPT
    (second.folder / "results.json").write_text(json.dumps({"results": {"../../toy": {}}}))
    with pytest.raises(ValueError, match="it has a result named"):
        second.restore()
