"""Jobs: what the rows of the asked tables need, each model once, however many tables show it."""

import json
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, get_args

from unordinal.config import RunConfig, Size
from unordinal.data import source_of
from unordinal.experiments import DATA, TABLES, Row, Table, Task
from unordinal.names import check_known, unknown
from unordinal.overrides import with_settings
from unordinal.recipes import configured

BUDGETS = (0.2, 0.4, 0.8, 1.6)  # of the scaling table, as shares of the minutes for a row
SCALING_SIZES: tuple[Size, ...] = ("tiny", "small")
TIMES = "sampling-time"
TABLE_SECONDS = 60.0  # that a table of sampling times is expected to take
SCORING_SECONDS = 120.0  # the most that scoring may take
LEAST_SCORING, SCORING_SHARE = 5.0, 0.5  # seconds, and the share of the training time


@dataclass(frozen=True)
class Asked:
    """What is to be reproduced.

    Args:
        names: the tables.
        size: the size of the models.
        minutes: the training time of a row; None for the budgets of the size.
        seeds: how many runs the table of deviations has for each model; None for the paper's three.
        data: data sets of the paper, and what takes their places.
        threads: CPU threads of a job.
        rows: only jobs whose keys match one of these patterns, in which * stands for anything; none for all jobs.
    """

    names: tuple[str, ...]
    size: Size = "tiny"
    minutes: float | None = 5.0
    seeds: int | None = None
    data: tuple[tuple[Task, str], ...] = ()
    threads: int = 1
    rows: tuple[str, ...] = ()

    def has(self, key: str) -> bool:
        """Return whether a job is asked for, by its key."""
        return not self.rows or any(fnmatchcase(key, pattern) for pattern in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; paths keep their last part only."""
        return {**asdict(self), "data": [[task, short(what)] for task, what in self.data]}


@dataclass(frozen=True)
class Job:
    """One model to train, score and sample, or a table of sampling times."""

    key: str
    kind: str  # of its table: scores, times or scaling
    experiment: str
    task: Task
    source: str
    size: Size
    minutes: float | None
    seed: int = 0
    threads: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    iwbo: bool = False
    shown: bool = False  # whether samples are drawn

    @property
    def seconds(self) -> float:
        """How long the job is expected to take."""
        if self.kind == "times":
            return TABLE_SECONDS
        minutes = self.minutes or 60.0
        return minutes * 60 * 1.05 + min(self.scoring_seconds, 20 + minutes) + 10

    @property
    def scoring_seconds(self) -> float:
        """The most seconds that scoring may take."""
        if self.minutes is None:
            return SCORING_SECONDS
        return min(SCORING_SECONDS, max(LEAST_SCORING, SCORING_SHARE * 60 * self.minutes))

    def config(self) -> RunConfig:
        """Return the configuration of the run."""
        data = source_of(self.source)
        settings = DATA[self.task].settings
        if "/" not in self.experiment:  # a model that the paper did not run, on the paper's data
            data = data.adapted(**settings)
        config = configured(self.experiment, self.size, data=data)
        budget = {} if self.minutes is None else {"minutes": self.minutes}
        return with_settings(config, {**self.settings, **budget, "seed": self.seed})

    def command(self) -> str:
        """Return the command that trains the same model."""
        what = Path(self.source).name if Path(self.source).exists() else self.source
        own = "" if "/" in self.experiment else " ".join(flags(DATA[self.task].settings))
        words = ["unordinal train", self.experiment, "--data", what, own, "--size", self.size]
        words += [] if self.minutes is None else ["--minutes", f"{self.minutes:g}"]
        words += [*flags(self.settings), "--seed", str(self.seed), "--threads", str(self.threads)]
        return " ".join(word for word in words if word)


def flags(settings: dict[str, Any]) -> list[str]:
    """Return settings as options of the command line."""
    named = ((name.replace("_", "-"), value) for name, value in settings.items())
    return [f"--{name}" if value is True else f"--{name} {value}" for name, value in named]


def tables_named(names: tuple[str, ...]) -> dict[str, Table]:
    """Return tables by name; all stands for every table."""
    if "all" in names:
        return dict(TABLES)
    for name in names:
        if name not in TABLES:
            raise unknown("table", name, (*TABLES, "all", "list"), listed_by="`unordinal reproduce list` lists them")
    return {name: TABLES[name] for name in dict.fromkeys(names)}


def parsed_data(given: tuple[str, ...], size: Size) -> tuple[tuple[Task, str], ...]:
    """Return pairs of a data set of the paper and what takes its place.

    Args:
        given: texts such as text8=PATH; a data set may be given several times.
        size: the size of the models; size paper takes the paper's own data by default, others what is always here.

    Raises:
        ValueError: if a text names no data set of the paper, or its data cannot be found.
    """
    chosen: list[tuple[Task, str]] = []
    for text in given:
        task, is_pair, what = text.partition("=")
        if not is_pair or not what:
            raise ValueError(f"`data` takes NAME=PATH, such as text8=text8.zip, got {text!r}")
        check_known("data set of the paper", task, get_args(Task))
        source_of(what)
        chosen.append((next(known for known in DATA if known == task), what))
    for known, paper in DATA.items():
        if known not in dict(chosen):
            chosen.append((known, paper.source if size == "paper" else paper.stand_in))
    return tuple(sorted(chosen, key=lambda pair: list(DATA).index(pair[0])))


def short(source: str) -> str:
    """Return the last part of a path; anything else as it is."""
    return Path(source).name if Path(source).exists() else source


def labelled(asked: Asked) -> list[tuple[Task, str, str]]:
    """Return each data set with its source and its name in keys: that of the paper, unless there are several."""
    tasks = [task for task, _ in asked.data]
    return [
        (task, what, task if tasks.count(task) == 1 else Path(short(what)).name.partition(".")[0])
        for task, what in asked.data
    ]


def jobs_of_row(row: Row, kind: str, asked: Asked, only: str | None = None) -> list[Job]:
    """Return the jobs whose results a row shows, on all of its data sets or on one, by its name in keys."""
    found = []
    plain = "-".join(
        f"{name.rpartition('.')[2]}{value}" for name, value in row.settings.items() if name != "surjection"
    )
    for task, what, label in labelled(asked):
        if task != row.data or only not in (None, label):
            continue
        name = "-".join(filter(None, (label, row.model, plain.replace(":", "").replace("True", ""))))
        job = Job(
            name, "scores", row.experiment, task, what, asked.size, asked.minutes, threads=asked.threads,
            settings=dict(row.settings), iwbo=bool(row.iwbo), shown=True,
        )  # fmt: skip
        if kind == "scaling":
            whole = 5.0 if asked.minutes is None else asked.minutes
            found += [
                replace(job, key=f"{name}-{size}-{budget:g}", kind=kind, size=size, minutes=budget, shown=False)
                for size in SCALING_SIZES
                for budget in (round(share * whole, 6) for share in BUDGETS)
            ]
            continue
        seeds = 1 if row.seeds == 1 else asked.seeds or row.seeds
        found += [
            replace(job, key=f"{name}-seed{seed}" if seed else name, seed=seed, shown=not seed) for seed in range(seeds)
        ]
    return [job for job in found if asked.has(job.key)]


def jobs_of(asked: Asked) -> list[Job]:
    """Return the jobs of all tables, each model once; raise a ValueError if there are none of the rows asked for."""
    found: dict[str, Job] = {}
    for name, table in tables_named(asked.names).items():
        if table.kind == "times":
            if not asked.has(TIMES):
                continue
            found[TIMES] = Job(TIMES, "times", name, "text8", "", asked.size, None, threads=asked.threads)
            continue
        for row in table.rows:
            for job in jobs_of_row(row, table.kind, asked):
                known = found.setdefault(job.key, job)
                found[job.key] = replace(known, iwbo=known.iwbo or job.iwbo, shown=known.shown or job.shown)
    if not found:
        every = [job.key for job in jobs_of(replace(asked, rows=()))]
        raise unknown("row", asked.rows[0], every, listed_by="--dry-run prints the keys of the rows")
    return list(found.values())


def as_line(job: Job) -> str:
    """Return a job as one line of JSON."""
    return json.dumps(asdict(job))


def of_line(line: str) -> Job:
    """Return the job of a line of JSON."""
    return Job(**json.loads(line))
