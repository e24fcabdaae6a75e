"""Jobs of the paper's tables."""

import shlex
from dataclasses import replace
from typing import Any

import pytest
from conftest import Cli

from unordinal.cli import train
from unordinal.config import RunConfig
from unordinal.experiments import DATA, TABLES
from unordinal.recipes import suited_to
from unordinal.reproduce.jobs import BUDGETS, TIMES, Asked, Job, as_line, jobs_of, jobs_of_row, of_line, parsed_data

DATA_HERE = parsed_data((), "tiny")
ALL = jobs_of(Asked(("all",), data=DATA_HERE))


def test_every_model_is_trained_once() -> None:
    made = [(job.experiment, job.task, job.size, job.minutes, job.seed, str(job.settings)) for job in ALL]
    assert len(set(made)) == len(made)
    assert len({job.key for job in ALL}) == len(ALL)
    rows = sum(len(table.rows) for table in TABLES.values())
    assert len(ALL) > rows  # some rows have several seeds or budgets
    assert sum(job.key == TIMES for job in ALL) == 1


@pytest.mark.parametrize("name", [name for name, table in TABLES.items() if table.kind != "times"])
def test_every_row_has_its_jobs(name: str) -> None:
    keys = {job.key for job in jobs_of(Asked((name,), data=DATA_HERE))}
    for row in TABLES[name].rows:
        own = {job.key for job in jobs_of_row(row, TABLES[name].kind, Asked((name,), data=DATA_HERE))}
        assert own
        assert own <= keys


def test_seeds_and_budgets_become_jobs() -> None:
    deviations = jobs_of(Asked(("deviations",), seeds=2, data=DATA_HERE))
    assert sorted({job.seed for job in deviations}) == [0, 1]
    assert len(deviations) == 2 * len(TABLES["deviations"].rows)
    scaling = jobs_of(Asked(("scaling",), minutes=10.0, data=DATA_HERE))
    assert {job.minutes for job in scaling} == {10 * share for share in BUDGETS}


def test_a_data_set_may_be_given_twice() -> None:
    data = parsed_data(("text8=docs", "text8=names"), "tiny")
    jobs = jobs_of(Asked(("cartesian",), data=data))
    assert {job.key.partition("-")[0] for job in jobs} == {"docs", "names"}


FIRST = [job for job in ALL if job.kind == "scores" and job.seed == 0 and job.task != "enwik8"]


@pytest.mark.parametrize("job", FIRST, ids=lambda job: job.key)
def test_the_command_of_a_job_trains_the_same(job: Job, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunConfig] = []

    def noted(config: RunConfig, *_args: Any, **_settings: Any) -> int:
        seen.append(config)
        return 0

    monkeypatch.setattr(train, "train_and_tell", noted)
    program, *words = shlex.split(job.command())
    assert program == "unordinal"
    assert cli(*words).code == 0
    config = job.config()
    assert seen == [suited_to(config, config.data.load(), tuple(job.settings))[0]]


def test_jobs_survive_a_line_of_json() -> None:
    for job in ALL:
        assert of_line(as_line(job)) == job


def test_jobs_of_the_paper_have_the_paper_s_budget() -> None:
    jobs = jobs_of(Asked(("text-models",), "paper", None, data=parsed_data((), "tiny")))
    first = next(job for job in jobs if job.experiment == "text8/multinomial")
    assert first.config().train.minutes is None
    assert first.config().train.epochs is not None
    assert first.config().data.length == DATA["text8"].settings["length"]  # type: ignore[attr-defined]
    assert replace(first, minutes=2.0).config().train.minutes == 2.0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("text8", "takes NAME=PATH"),
        ("text9=docs", "unknown data set of the paper 'text9'"),
        ("text8=", "takes NAME=PATH"),
        ("text8=nothing-here.txt", "nothing-here.txt"),
    ],
)
def test_wrong_data_are_refused(given: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        parsed_data((given,), "tiny")


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown table 'cartesain'.*cartesian"):
        jobs_of(Asked(("cartesain",), data=DATA_HERE))


def test_rows_are_chosen_by_their_keys() -> None:
    asked = Asked(("all",), data=DATA_HERE, rows=("text8-arm", "enwik8-*-coupling"))
    assert [job.key for job in jobs_of(asked)] == [
        "enwik8-uniform-dequant-coupling", "enwik8-variational-dequant-coupling", "enwik8-argmax-coupling", "text8-arm",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"unknown row 'text8-amr'; did you mean text8-arm\?"):
        jobs_of(Asked(("text-models",), data=DATA_HERE, rows=("text8-amr",)))
