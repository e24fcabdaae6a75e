"""The server's answers, without a server: which model does what, and what a chain tells."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from unordinal.api import Run, load
from unordinal.web.answers import Answers, tasks_of
from unordinal.web.jobs import Job, Workshop
from unordinal.web.requests import BitsRequest, CorrectRequest, FillMapRequest, FillRequest, SampleRequest


@pytest.fixture(scope="module")
def runs(arms: dict[str, Path], diffusions: dict[str, Path]) -> dict[str, Run]:
    return {name: load(path) for name, path in {**diffusions, "arm": arms["arm"]}.items()}


def answered(work: Any, asked: Any) -> tuple[Any, list[Any]]:
    """The result of a piece of work, and the frames that it told."""

    async def run() -> tuple[Any, list[Any]]:
        shop = Workshop(1, 1)
        job = shop.submit(lambda job: work(asked, job))
        frames = []
        while (event := await job.events.get()).name == "frame":
            frames.append(event.value)
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


def test_a_chain_begins_with_noise_and_ends_with_the_sample(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, SampleRequest(model="absorbing", length=12, steps=6, seed=3))
    assert [frame["index"] for frame in frames] == list(range(7))
    assert set(frames[0]["symbols"]) == {"·"}
    assert "".join(frames[-1]["symbols"]) == found["sample"]
    assert found["sample"] == runs["absorbing"].sample(1, length=12, steps=6, seed=3)[0]


def test_a_long_chain_is_thinned_and_keeps_its_last_frame(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, SampleRequest(model="uniform", length=8, steps=300))
    assert len(frames) <= 130
    assert frames[-1]["index"] == 300
    assert "".join(frames[-1]["symbols"]) == found["sample"]


def test_a_map_settles_and_its_hole_is_filled(runs: dict[str, Run]) -> None:
    found, frames = answered(Answers(runs).stream, SampleRequest(model="maps", steps=4))
    assert frames[-1]["map"] == found["sample"]
    hole = [[-1 if x < 3 and y < 2 else value for x, value in enumerate(row)] for y, row in enumerate(found["sample"])]
    filled, _ = answered(Answers(runs).fill_map, FillMapRequest(hole, num=2))
    for proposal in filled["proposals"]:
        kept = [
            (given, new)
            for rows in zip(hole, proposal["map"], strict=True)
            for given, new in zip(*rows, strict=True)
            if given >= 0
        ]
        assert all(given == new for given, new in kept)


@pytest.mark.parametrize(
    ("work", "asked", "part"),
    [
        ("sample", SampleRequest(model="unifrom"), "unknown model 'unifrom'; did you mean uniform?"),
        ("sample", SampleRequest(model="arm", steps=5), "`steps` is for models that have reverse steps"),
        ("sample", SampleRequest(model="maps", length=5), "`length` is for sequences"),
        ("sample", SampleRequest(model="uniform", prompt="a"), "`prompt` is for autoregressive models"),
        ("sample", SampleRequest(model="uniform", sampler="entropy"), "has no mask"),
        ("sample", SampleRequest(model="arm", prompt="A!"), "expected a-z and space"),
        ("stream", SampleRequest(model="arm"), "`chain` is for models that have reverse steps"),
        ("correct", CorrectRequest("abc", model="absorbing"), "needs a diffusion with uniform noise"),
        ("correct", CorrectRequest("abc", model="uniform", method="beam"), "method beam needs an autoregressive model"),
        ("correct", CorrectRequest("abc", model="maps"), "is for text"),
        ("fill", FillRequest("no gap here"), "the text has no gap"),
        ("fill", FillRequest("____"), "all gaps"),
        ("fill_map", FillMapRequest([[-1]]), "have 8 x 16 pixels, got 1 x 1"),
        ("fill_map", FillMapRequest([[0] * 16] * 8), "leaves nothing free"),
        ("fill_map", FillMapRequest([[-1] * 15 + [999]] * 8), "class 999"),
        ("bits", BitsRequest(" \n "), "empty"),
        ("bits", BitsRequest("abc", model="maps"), "is for text"),
    ],
)
def test_what_cannot_be_is_refused(runs: dict[str, Run], work: str, asked: Any, part: str) -> None:
    with pytest.raises(ValueError, match=part.replace("?", r"\?")):
        answered(getattr(Answers(runs), work), asked)


def test_a_bound_has_the_same_bits_whatever_runs_beside_it(runs: dict[str, Run]) -> None:
    asked = BitsRequest("the quick brown fox", model="uniform", seed=5)

    async def both() -> list[Any]:
        shop = Workshop(3, 3)
        jobs: list[Job] = [shop.submit(lambda job: Answers(runs).bits(asked, job)) for _ in range(3)]
        found = [await job.result() for job in jobs]
        shop.close()
        return found

    first, second, third = asyncio.run(both())
    assert first == second == third
