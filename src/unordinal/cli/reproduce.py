"""`unordinal reproduce`: the tables and figures of the paper."""

import json
import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from unordinal.cli.parsing import POSITIONAL, parse
from unordinal.cli.words import Words
from unordinal.config import Size
from unordinal.console import print_json, progress, say
from unordinal.experiments import TABLES
from unordinal.settings import Checked, Flag, Range

if TYPE_CHECKING:
    from unordinal.reproduce.jobs import Asked, Job
    from unordinal.reproduce.outcome import Outcome


@dataclass(frozen=True)
class ReproduceArgs(Checked):
    """Train, score and sample the models of the paper's tables, and write a report next to the paper's figures.

    Each model is trained once, however many tables show it. The same command continues after Ctrl-C or a kill, and
    skips what is done. It ends in report.html, report.md and results.json; a results.json alone in the folder --out is
    continued too.

    Examples:
        unordinal reproduce list
        unordinal reproduce cityscapes --minutes 5 --data cityscapes=landcover32x64.npz --jobs 2
        unordinal reproduce all --data text8=text8.zip --data enwik8=enwik8.zip
        unordinal reproduce all --size paper --dry-run
        unordinal reproduce text-models --size small --minutes 30 --rows text8-arm text8-multinomial
        unordinal reproduce --render reproduction/results.json
    """

    FIRST: ClassVar = (
        "size",
        "minutes",
        "data",
        "rows",
        "out",
        "jobs",
        "threads",
        "dry_run",
        "render",
        "again",
        "json",
    )
    names: Annotated[tuple[str, ...], POSITIONAL, Flag(metavar="NAME")] = ()
    """Tables to reproduce, `all` of them, or `list` to list them."""
    size: Size = "tiny"
    """Size of the models; paper is as published."""
    minutes: Annotated[float | None, Range(above=0)] = None
    """Training time of each row; default 5, and the paper's epochs at size paper."""
    seeds: Annotated[int | None, Range(1)] = None
    """Runs of each model in the table of deviations; default the paper's 3."""
    data: Annotated[tuple[str, ...], Flag(metavar="NAME=PATH")] = ()
    """Data for a data set of the paper (text8, enwik8, cityscapes), such as text8=text8.zip; a name may be given twice.
    Default data that are always here, and the paper's own at size paper."""
    rows: Annotated[tuple[str, ...], Flag(metavar="KEY")] = ()
    """Only these rows, by the keys that --dry-run prints; * stands for anything, as in text8-*."""
    out: Path = Path("reproduction")
    """Folder of runs, results and the report."""
    jobs: Annotated[int | None, Range(1)] = None
    """Models trained at a time; default the number of cores over the threads, 1 at size paper."""
    threads: Annotated[int, Range(1)] = 1
    """CPU threads of each job."""
    dry_run: bool = False
    """Print what each row would cost in operations and memory, and train nothing."""
    again: bool = False
    """Make results again that other settings, data or code made; by default they are kept and marked as stale."""
    render: Path | None = None
    """Write the report of this results.json next to it, and train nothing."""
    json: bool = False
    """End with one JSON object on stdout."""


def main(words: Words) -> int:
    args = parse(words, ReproduceArgs)
    if args.render is not None:
        return render(args.render, args)
    if not args.names or "list" in args.names:
        return list_tables(args)
    from unordinal.reproduce.jobs import Asked, jobs_of, parsed_data

    minutes = args.minutes if args.minutes or args.size == "paper" else 5.0
    data = parsed_data(args.data, args.size)
    asked = Asked(args.names, args.size, minutes, args.seeds, data, args.threads, args.rows)
    jobs = jobs_of(asked)
    return dry_run(jobs, args) if args.dry_run else reproduce(asked, jobs, args)


def list_tables(args: ReproduceArgs) -> int:
    """Print the tables, and how many rows each has."""
    if args.json:
        print_json({name: {"title": table.title, "rows": len(table.rows)} for name, table in TABLES.items()})
        return 0
    width = max(map(len, TABLES))
    print("unordinal reproduce NAME... | all\n")
    for name, table in TABLES.items():
        print(f"  {name:<{width}}  {table.title} ({len(table.rows)} rows)")
    return 0


def dry_run(jobs: "list[Job]", args: ReproduceArgs) -> int:
    """Print what each job would cost."""
    from unordinal.reproduce.cost import cost_of

    rows: list[dict[str, Any]] = []
    head = f"{'model':<44} {'parameters':>12} {'operations/step':>16} {'steps':>10} {'operations':>12} {'memory':>9}"
    if not args.json:
        print(head)
    for job in (job for job in jobs if job.kind != "times"):
        cost = cost_of(job)
        rows.append({"model": job.key, **vars(cost), "total": cost.total})
        steps, total = ("-", "-") if cost.total is None else (f"{cost.steps:,}", f"{cost.total:.2e}")
        if not args.json:
            numbers = (
                f"{cost.parameters:>12,} {cost.step:>16.2e} {steps:>10} {total:>12} {cost.memory / 2**30:>6.2f} GB"
            )
            print(f"{job.key:<44} {numbers}")
    if args.json:
        print_json({"jobs": rows})
    return 0


def reproduce(asked: "Asked", jobs: "list[Job]", args: ReproduceArgs) -> int:
    """Do the jobs that are not done, write the report, and return the exit code."""
    from unordinal.reproduce.pool import Pool
    from unordinal.reproduce.work import DONE, FAILED, KEPT, STALE, Place
    from unordinal.runs.lock import locked

    if args.out.exists() and not args.out.is_dir():
        raise ValueError(f"{args.out} is a file; expected a folder for `out`")
    place, size = (
        Place(args.out),
        args.jobs or (1 if args.size == "paper" else max(1, (os.cpu_count() or 1) // args.threads)),
    )
    args.out.mkdir(parents=True, exist_ok=True)
    with locked(args.out):
        ended: dict[str, Any] = {}
        interrupted = False
        restore(place)
        pool = Pool(args.out, size, args.threads, say)
        try:
            ended = pool.run(jobs, progress)
            if args.again:
                again = [job for job in jobs if ended[job.key].state == STALE]
                for job in again:
                    place.result(job.key).unlink()
                    shutil.rmtree(place.run(job.key), ignore_errors=True)
                ended |= pool.run(again, progress) if again else {}
        except KeyboardInterrupt:
            interrupted = True
        outcome = outcome_of(asked, jobs, place, ended)
        paths = write(outcome, args.out)
    if interrupted:
        say("Interrupted; the same command continues.")
        return 128 + signal.SIGINT
    counts = {state: sum(found.state == state for found in ended.values()) for state in (DONE, KEPT, STALE, FAILED)}
    told = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
    say(f"{told}. Report: {paths[0]}, {paths[1]}, {paths[2]}")
    if counts[STALE]:
        say("Stale results were made with other settings, data or code; --again makes them again.")
    if args.json:
        print_json({"states": counts, "report": [str(path) for path in paths]})
    return 1 if counts[FAILED] else 0


def restore(place: Any) -> None:
    """Take over the results of a results.json; raise a ValueError if it cannot be read."""
    try:
        place.restore()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{place.folder / 'results.json'} is damaged, remove it to start without its results: {error}"
        ) from error


def outcome_of(asked: "Asked", jobs: "list[Job]", place: Any, ended: dict[str, Any]) -> "Outcome":
    """Return what the report is made from: the results in the folder, and why others are missing."""
    from unordinal.reproduce.outcome import Outcome
    from unordinal.reproduce.work import FAILED, STALE

    found = {job.key: place.found(job.key) for job in jobs}
    results = {key: result for key, result in found.items() if result is not None}
    states = {key: f"failed: {end.reason}" if end.state == FAILED else end.state for key, end in ended.items()}
    kept = {key: state for key, state in states.items() if state == STALE or key not in results}
    return Outcome(asked, results, kept)


def write(outcome: "Outcome", folder: Path) -> tuple[Path, Path, Path]:
    """Write the report and the results, and return their paths."""
    from unordinal.data.storage import replacing
    from unordinal.reproduce.render import markdown, page

    paths = folder / "report.html", folder / "report.md", folder / "results.json"
    contents = page(outcome), markdown(outcome).encode(), (json.dumps(outcome.to_dict()) + "\n").encode()
    for path, content in zip(paths, contents, strict=True):
        with replacing(path) as file:
            file.write(content)
    return paths


def render(path: Path, args: ReproduceArgs) -> int:
    """Write the report of a results.json next to it."""
    from unordinal.data.unpacking import read_json
    from unordinal.reproduce.outcome import Outcome

    if not path.is_file():
        raise ValueError(f"there is no file {path}; expected the results.json that `unordinal reproduce` writes")
    try:
        outcome = Outcome.from_dict(read_json(path))
        paths = write(outcome, path.parent)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error
    say(f"Report: {paths[0]}, {paths[1]}")
    if args.json:
        print_json({"report": [str(part) for part in paths]})
    return 0
