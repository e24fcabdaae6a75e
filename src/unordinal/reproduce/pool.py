"""Run jobs in worker processes, several at a time, and report how far they are."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from unordinal.progress import Advance, Progress
from unordinal.reproduce.jobs import Job, as_line
from unordinal.reproduce.work import DONE, FAILED, STOPPED

POLL_SECONDS, STOP_SECONDS = 1.0, 120.0


@dataclass
class Worker:
    """A worker process, and the job that it does."""

    process: subprocess.Popen[str]
    job: Job | None = None
    reported: float = 0.0  # seconds of the job that the progress has counted

    def give(self, job: Job) -> None:
        """Hand a job to the worker."""
        assert self.process.stdin is not None
        self.job, self.reported = job, 0.0
        self.process.stdin.write(as_line(job) + "\n")
        self.process.stdin.flush()

    def stop(self) -> None:
        """Let the worker save what it is doing, and wait for it."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Ended:
    """What became of a job, and why."""

    state: str
    reason: str = ""


@dataclass
class Pool:
    """Does jobs in worker processes.

    Args:
        folder: where results and runs are.
        size: how many jobs are done at a time.
        threads: CPU threads of each.
        tell: receives a line for every job that was done or that failed.
    """

    folder: Path
    size: int
    threads: int
    tell: Callable[[str], None]
    workers: list[Worker] = field(default_factory=list)
    answers: "queue.Queue[tuple[Worker, str]]" = field(default_factory=queue.Queue)

    def run(self, jobs: list[Job], progress: Progress) -> dict[str, Ended]:
        """Do all jobs; return what became of each. Ctrl-C saves what is being done."""
        waiting, ended = list(jobs), dict[str, Ended]()
        self.folder.mkdir(parents=True, exist_ok=True)
        with progress("Reproducing", sum(job.seconds for job in jobs) / self.size) as advance:
            try:
                while waiting or any(worker.job for worker in self.workers):
                    while waiting and sum(worker.job is not None for worker in self.workers) < self.size:
                        self.free_worker().give(waiting.pop(0))
                    self.collect(ended, advance)
            finally:
                for worker in self.workers:
                    worker.stop()
        return ended

    def free_worker(self) -> Worker:
        """Return a worker that has nothing to do; start one if there is none."""
        for worker in self.workers:
            if worker.job is None and worker.process.poll() is None:
                return worker
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        with (self.folder / "workers.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "unordinal.reproduce.work", str(self.folder)], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=log, text=True, env=environment, start_new_session=True,
            )  # fmt: skip
        worker = Worker(process)
        self.workers.append(worker)
        threading.Thread(target=self.listen, args=(worker,), daemon=True).start()
        return worker

    def listen(self, worker: Worker) -> None:
        """Queue the answers of a worker, and an empty one when it ends."""
        assert worker.process.stdout is not None
        with worker.process.stdout as lines:
            for line in lines:
                self.answers.put((worker, line))
        self.answers.put((worker, ""))

    def collect(self, ended: dict[str, Ended], advance: Advance) -> None:
        """Wait a moment for an answer, note it, and count the seconds that have passed."""
        began, answered, line = time.monotonic(), None, ""
        with suppress(queue.Empty):
            answered, line = self.answers.get(timeout=POLL_SECONDS)
        passed = time.monotonic() - began
        for worker in [worker for worker in self.workers if worker.job is not None]:
            job = worker.job
            assert job is not None
            left = max(0.0, job.seconds - worker.reported)
            step = left if worker is answered else min(passed, left)
            worker.reported += step
            advance(step / self.size)
            if worker is answered:
                answer = json.loads(line) if line else {"state": FAILED, "reason": "the worker process died"}
                ended[job.key] = Ended(answer["state"], answer["reason"])
                self.report(job, ended[job.key])
                worker.job = None
                if not line or answer["state"] == STOPPED:
                    worker.stop()
                    self.workers.remove(worker)

    def report(self, job: Job, found: Ended) -> None:
        """Tell what became of a job, unless its result was there already."""
        if found.state in (DONE, FAILED):
            self.tell(f"{job.key}: {found.state}{': ' if found.reason else ''}{found.reason}")
