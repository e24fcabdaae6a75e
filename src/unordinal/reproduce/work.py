"""A worker process: it reads jobs from standard input, one line each, and trains, scores and samples their models.

A result is a JSON file that is written whole or not at all. A worker whose standard input is closed, since the command
that started it has ended, saves what it is doing and stops.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from unordinal import __version__
from unordinal.data import Data
from unordinal.data.storage import replacing
from unordinal.data.unpacking import read_json
from unordinal.evaluate.likelihood import Evaluate
from unordinal.evaluate.score import Score
from unordinal.recipes import suited_to
from unordinal.reproduce.code import code_of
from unordinal.reproduce.jobs import Job, of_line
from unordinal.reproduce.show import shown_of
from unordinal.run import Run
from unordinal.runs.folder import RunFolder
from unordinal.train.start import build_model, train_run

FIRST_SCORED, GROWTH = 8, 16  # examples that are scored to measure the speed, and how many times more at most come next
IWBO_MAPS, IWBO_DRAWS = 10, (1000, 500, 200, 100, 10)  # the paper's importance samples, or what there is time for
DEVIATIONS, REPEATS = 10, 3  # samples of the table of sampling times, at size paper and at others
DONE, KEPT, STALE, FAILED, STOPPED = "done", "kept", "stale", "failed", "stopped"


@dataclass(frozen=True)
class Place:
    """Where the results and the runs of a reproduction are."""

    folder: Path

    def result(self, key: str) -> Path:
        """Return the file of a job's result."""
        return self.folder / "jobs" / f"{key}.json"

    def run(self, key: str) -> Path:
        """Return the folder of a job's run."""
        return self.folder / "runs" / key

    def found(self, key: str) -> dict[str, Any] | None:
        """Return the result of a job, or None if there is none that can be read."""
        try:
            values: dict[str, Any] = json.loads(self.result(key).read_text())
        except (OSError, ValueError):
            return None
        return values

    def write(self, key: str, values: dict[str, Any]) -> None:
        """Write the result of a job."""
        self.result(key).parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.result(key)) as file:
            file.write((json.dumps(values) + "\n").encode())

    def restore(self) -> None:
        """Take over the results of a results.json in the folder, where there is nothing else left of them."""
        path = self.folder / "results.json"
        if path.is_file():
            for key, values in read_json(path)["results"].items():
                if Path(key).name != key:
                    raise ValueError(f"it has a result named {key!r}")
                if self.found(key) is None:
                    self.write(key, values)


def do(job: Job, place: Place) -> str:
    """Do a job, unless its result is there already; return what became of it."""
    if job.kind == "times":
        return do_times(job, place)
    torch.set_num_threads(job.threads)
    config = job.config()
    data = config.data.load()
    config = suited_to(config, data, tuple(job.settings))[0]
    settings = {**config.to_dict(), "data": config.data.name.rpartition("/")[2]}
    made = {
        "settings": json.loads(json.dumps(settings)),  # as the result's file gives them back
        "data": data.spec.fingerprint,
        "code": code_of(build_model(config, data.spec, None)),
    }
    earlier = place.found(job.key)
    if earlier is not None and earlier["made"] != made:
        return STALE
    if earlier is not None and (earlier["job"]["iwbo"] or not job.iwbo):
        return KEPT
    folder, began = RunFolder(place.run(job.key)), time.monotonic()
    outcome = train_run(config, data, folder, resume=True)
    if outcome.interrupted_by is not None:
        return STOPPED
    folder.load_weights(outcome.model)
    run = Run(outcome.model.eval(), data.spec, config, folder, data)
    parameters = sum(p.numel() for p in run.model.parameters())
    trained = {"steps": outcome.step, "seconds": outcome.seconds, "parameters": parameters}
    values: dict[str, Any] = {
        "job": {**asdict(job), "source": Path(job.source).name if Path(job.source).exists() else job.source},
        "made": made, "trained": trained, "scores": scores_of(run, data, job), "unit": data.spec.unit,
        "data": {
            "name": data.spec.name.rpartition("/")[2], "sizes": list(data.spec.split_sizes),
            "num_classes": data.spec.num_classes, "categories": data.spec.categories,
        },
        "command": job.command(), **surroundings(),
    }  # fmt: skip
    values["shown"] = shown_of(run, data) if job.shown else {}
    place.write(job.key, {**values, "seconds": time.monotonic() - began})
    return DONE


def do_times(job: Job, place: Place) -> str:
    """Measure the sampling times of new models, unless that was done already."""
    from unordinal.evaluate.timing import time_sampling
    from unordinal.experiments import TABLES

    made = {"size": job.size, "threads": job.threads}
    earlier = place.found(job.key)
    if earlier is not None:
        return KEPT if earlier["made"] == made else STALE
    torch.set_num_threads(job.threads)
    presets = list(dict.fromkeys(row.experiment for row in TABLES[job.key].rows))
    repeats = DEVIATIONS if job.size == "paper" else REPEATS
    timings, is_whole = time_sampling(presets, size=job.size, lengths=[256], repeats=repeats)
    if not is_whole:
        return STOPPED
    command = f"unordinal bench sampling --size {job.size} --repeats {repeats} --threads {job.threads}"
    values = {"job": asdict(job), "made": made, "times": [vars(t) for t in timings], "command": command}
    place.write(job.key, {**values, **surroundings()})
    return DONE


def scores_of(run: Run, data: Data, job: Job) -> dict[str, Any]:
    """Score a run within the time that the job has for it."""
    began = time.monotonic()
    if data.pmf is not None:
        return {"elbo": run.scored(Evaluate(split="exact"), data).to_dict()}
    found = {"elbo": score_within(run, data, Evaluate(split="test"), job.scoring_seconds).to_dict()}
    if job.iwbo and run.model.weights is not None:
        found["iwbo"] = iwbo_within(run, data, job.scoring_seconds - (time.monotonic() - began)).to_dict()
    return found


def score_within(run: Run, data: Data, asked: Evaluate, seconds: float) -> Score:
    """Score as many of the first test examples as a time allows, with growing numbers of them."""
    total, began = len(data.test), time.monotonic()
    num = min(FIRST_SCORED, total)
    score = run.scored(replace(asked, num_examples=num), data)
    while num < total:
        left = seconds - (time.monotonic() - began)
        affordable = int(left / max(score.seconds / num, 1e-9))
        if affordable <= num:
            break
        num = min(total, affordable, GROWTH * num)
        score = run.scored(replace(asked, num_examples=num), data)
    return score


def iwbo_within(run: Run, data: Data, seconds: float) -> Score:
    """Return the importance-weighted bound of the first maps, with as many draws as a time allows."""
    num = min(IWBO_MAPS, len(data.test))
    trial = run.scored(Evaluate(split="test", bound="iwbo", k=IWBO_DRAWS[-1], num_examples=1), data)
    each = trial.seconds / IWBO_DRAWS[-1]
    draws = next((k for k in IWBO_DRAWS if k * num * each <= seconds), IWBO_DRAWS[-1])
    return run.scored(Evaluate(split="test", bound="iwbo", k=draws, num_examples=num), data)


def surroundings() -> dict[str, Any]:
    """Return where and with what a result was made."""
    folder = Path(__file__).parent
    asked = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    try:
        commit = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except OSError:
        commit = ""
    return {
        "date": time.strftime("%Y-%m-%d"), "commit": commit or None, "version": __version__,
        "machine": {
            "cores": os.cpu_count(), "processor": processor(), "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }  # fmt: skip


def processor() -> str:
    """Return the name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def stop_with_parent(lines: "list[str]", arrived: threading.Condition) -> None:
    """Hand over the lines of standard input; when it ends, ask this process to save and stop."""
    for line in sys.stdin:
        with arrived:
            lines.append(line)
            arrived.notify()
    os.kill(os.getpid(), signal.SIGTERM)


def main(folder: Path) -> None:
    """Do the jobs that come in, and answer each with a line: what became of it, and why."""
    lines: list[str] = []
    arrived = threading.Condition()
    threading.Thread(target=stop_with_parent, args=(lines, arrived), daemon=True).start()
    while True:
        with arrived:
            arrived.wait_for(lambda: lines)
            job = of_line(lines.pop(0))
        reason = ""
        try:
            state = do(job, Place(folder))
        except Exception as error:  # one row must not end the others
            state, reason = FAILED, " ".join(f"{type(error).__name__}: {error}".split())
        answer = json.dumps({"key": job.key, "state": state, "reason": reason})
        try:
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
        except BrokenPipeError:  # the command that started this process has ended
            os._exit(0)
        if state == STOPPED:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
