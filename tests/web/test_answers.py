"""The server's answers, without a server: which model does what, and what a chain tells."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from unordinal.api import Run, fit, load
from unordinal.tasks.asking import Sample
from unordinal.tasks.correcting import Correct
from unordinal.tasks.filling import Fill, FillMap
from unordinal.tasks.lines import Measure
from unordinal.web.answers import Answers, tasks_of
from unordinal.web.jobs import Job, Workshop
from unordinal.web.reading import Wanted


@pytest.fixture(scope="module")
def runs(arms: dict[str, Path], diffusions: dict[str, Path]) -> dict[str, Run]:
    return {name: load(path) for name, path in {**diffusions, "arm": arms["arm"]}.items()}


def answered(work: Any, model: str | None, asked: Any, block: int | str | None = None) -> tuple[Any, list[Any]]:
    """The result of a piece of work, and the frames that it told."""

    async def run() -> tuple[Any, list[Any]]:
        shop = Workshop(1, 1)
        job = shop.submit(lambda job: work(Wanted(model, block), asked, job))
        frames = []
        while (event := await job.events.get()).name in ("frame", "progress"):
            frames += [event.value] if event.name == "frame" else []
        shop.close()
        if event.name == "error":
            raise event.value
        return event.value, frames

    return asyncio.run(run())


def test_every_model_is_asked_for_what_it_can_do(runs: dict[str, Run]) -> None:
    can = {name: {task for task, able in tasks_of(run).items() if able} for name, run in runs.items()}
    assert can == {
        "uniform": {"sample", "stream", "correct", "correct_pass", "bits"},
        "absorbing": {"sample", "stream", "fill", "bits"},
        "maps": {"sample", "stream", "fill_map"},
        "arm": {"sample", "correct", "correct_beam", "fill", "bits"},
    }
    models = Answers(runs).models()["models"]
    assert [model["name"] for model in models] == list(runs)
    assert models[2]["colours"][0].startswith("#")
    assert models[0]["samplers"] == ["ancestral", "corrected", "spread"]


def test_blocks_are_chosen_with_a_request(runs: dict[str, Run], book: Path) -> None:
    blocks = fit("block", str(book), steps=2, progress=False)
    served = Answers({**runs, "blocks": blocks})
    told = {model["name"]: model["blocks"] for model in served.models()["models"]}
    assert told["blocks"] == [4]
    assert told["arm"] == []
    asked = Sample(1, length=12, steps=12, seed=3)
    for block in (1, 2, "all"):
        found, _ = answered(served.sample, "blocks", asked if block != 1 else Sample(1, length=12, seed=3), block)
        assert len(found["samples"][0]) == 12
    whole, frames = answered(served.stream, None, Sample(1, length=12, steps=3, seed=3), "all")
    assert len(frames) == 4
    assert whole["network_calls"] == 3
    with pytest.raises(ValueError, match="draws one symbol after another, without a chain"):
        answered(served.stream, "blocks", Sample(1, length=12), 1)
    with pytest.raises(ValueError, match="`block` is for models of blocks"):
        answered(served.sample, "arm", Sample(1), 4)
    with pytest.raises(ValueError, match="no model is served that can do this"):
        answered(Answers(runs).sample, None, Sample(1), 4)


def test_a_chain_begins_with_noise_and_ends_with_the_sample(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, "absorbing", Sample(length=12, steps=6, seed=3))
    assert [frame["index"] for frame in frames] == list(range(7))
    assert set(frames[0]["symbols"]) == {"·"}
    assert "".join(frames[-1]["symbols"]) == found["sample"]
    assert found["sample"] == runs["absorbing"].sample(1, length=12, steps=6, seed=3)[0]


def test_a_long_chain_is_thinned_and_keeps_its_last_frame(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, "uniform", Sample(length=8, steps=300))
    assert len(frames) <= 130
    assert frames[-1]["index"] == 300
    assert "".join(frames[-1]["symbols"]) == found["sample"]


def test_a_map_settles_and_its_hole_is_filled(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, "maps", Sample(steps=4))
    assert frames[-1]["map"] == found["sample"]
    hole = [[-1 if x < 3 and y < 2 else value for x, value in enumerate(row)] for y, row in enumerate(found["sample"])]
    filled, _ = answered(Answers(runs).fill_map, None, FillMap(hole, num=2))
    for proposal in filled["proposals"]:
        kept = [
            (given, new)
            for rows in zip(hole, proposal["map"], strict=True)
            for given, new in zip(*rows, strict=True)
            if given >= 0
        ]
        assert all(given == new for given, new in kept)


@pytest.mark.parametrize(
    ("work", "model", "asked", "part"),
    [
        ("sample", "unifrom", Sample(), "unknown model 'unifrom'; did you mean uniform?"),
        ("sample", "arm", Sample(steps=5), "`steps` is for diffusions"),
        ("sample", "maps", Sample(length=5), "`length` is for sequences"),
        ("sample", "uniform", Sample(prompt="a"), "`prompt` is for autoregressive models"),
        ("sample", "uniform", Sample(sampler="entropy"), "unknown sampler 'entropy'"),
        ("stream", "arm", Sample(), "draws one symbol after another, without a chain of steps"),
        ("correct", "absorbing", Correct("abc"), "needs a diffusion with uniform noise"),
        ("correct", "uniform", Correct("abc", method="beam"), "`method` beam needs an autoregressive model"),
        ("correct", "maps", Correct("abc"), "is for text"),
        ("fill", None, Fill("no gap here"), "the text has no gap"),
        ("fill", None, Fill("____"), "all gaps"),
        ("fill_map", None, FillMap([[-1]]), "have 8 x 16 pixels, got 1 x 1"),
        ("fill_map", None, FillMap([[0] * 16] * 8), "leaves nothing free"),
        ("fill_map", None, FillMap([[-1] * 15 + [999]] * 8), "class 999"),
        ("bits", None, Measure(" \n "), "empty"),
        ("bits", "maps", Measure("abc"), "is for text"),
    ],
)
def test_what_cannot_be_is_refused(runs: dict[str, Run], work: str, model: str | None, asked: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part.replace("?", r"\?")):
        answered(getattr(Answers(runs), work), model, asked)


def test_answers_are_those_of_the_library(runs: dict[str, Run]) -> None:
    """The same requests, asked of the server and of the run itself."""
    sampled, _ = answered(Answers(runs).sample, "absorbing", Sample(2, length=12, steps=6, seed=3))
    assert sampled["samples"] == runs["absorbing"].sample(2, length=12, steps=6, seed=3)
    assert (sampled["network_calls"], sampled["steps"], sampled["seed"]) == (6, 6, 3)
    corrected, _ = answered(Answers(runs).correct, "uniform", Correct("the qxick fox", error_rate=0.1, threshold=0.01))
    expected = runs["uniform"].correct("the qxick fox", error_rate=0.1, threshold=0.01)
    assert corrected["text"] == expected.text
    assert len(corrected["suggestions"]) == len(expected.suggestions)
    filled, _ = answered(Answers(runs).fill, "absorbing", Fill("the _uick fox", num=3, seed=1))
    judged = runs["absorbing"].fill("the _uick fox", num=3, seed=1, judge=runs["arm"])
    assert [p["text"] for p in filled["proposals"]] == [p.text for p in judged.proposals]
    assert filled["kind"] == "exact, of the whole"
    measured, _ = answered(Answers(runs).bits, "arm", Measure("the fox\nqqqq"))
    bits = runs["arm"].bits("the fox\nqqqq")
    assert sorted(line["bits"] for line in measured["lines"]) == pytest.approx(sorted(b.bits for b in bits))
    scores = [line["score"] for line in measured["lines"]]
    assert scores == sorted(scores, reverse=True)  # the most surprising first


def test_the_default_number_of_steps_is_told_before_it_is_taken(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, "absorbing", Sample(length=9))
    assert found["steps"] == 9
    assert len(frames) == 10
    whole, _ = answered(Answers(runs).stream, "absorbing", Sample(length=9, steps="all"))
    assert whole["steps"] == 9


def test_a_bound_has_the_same_bits_whatever_runs_beside_it(runs: dict[str, Run]) -> None:
    asked = Measure("the quick brown fox", seed=5)

    async def both() -> list[Any]:
        shop = Workshop(3, 3)
        jobs: list[Job] = [shop.submit(lambda job: Answers(runs).bits(Wanted("uniform"), asked, job)) for _ in range(3)]
        found = [await job.result() for job in jobs]
        shop.close()
        return found

    first, second, third = asyncio.run(both())
    assert first == second == third


def test_a_bundled_model_may_be_named_without_its_prefix(runs: dict[str, Run]) -> None:
    served = Answers({"pretrained:small": runs["arm"]})
    assert (
        served.chosen(Wanted("small"), "sample") is served.chosen(Wanted("pretrained:small"), "sample") is runs["arm"]
    )
