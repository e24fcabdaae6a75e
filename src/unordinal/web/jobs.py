"""Work that requests wait for: a few threads, a bounded queue, and jobs that stop when their client is gone."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from unordinal.progress import Advance

SECONDS_BETWEEN = 0.3  # between two reports of progress


class BusyError(Exception):
    """The queue is full."""


class CancelledError(Exception):
    """The client of the job is gone."""


class TooLongError(Exception):
    """The job took longer than a job may."""


@dataclass(frozen=True)
class Event:
    """A message of a job to its client: "waiting", "progress", "frame", "done" or "error"."""

    name: str
    value: Any


Work = Callable[["Job"], Any]
"""The work of a job, in a thread of its own; it calls `job.check` after every step."""


class Job:
    """One piece of work and its messages.

    Args:
        work: the work.
        seconds: the longest that it may take once it has begun.
        dropped: called when the client of the job is gone.
    """

    def __init__(self, work: Work, seconds: float, dropped: "Callable[[Job], None]" = lambda _job: None):
        self.work = work
        self.seconds = seconds
        self.dropped = dropped
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.is_cancelled = threading.Event()
        self.began: float | None = None

    def cancel(self) -> None:
        """Cancel the job: a running job stops at its next step, a waiting one never starts."""
        self.is_cancelled.set()
        self.dropped(self)

    def check(self, _amount: float = 0.0) -> None:
        """Raise an error if the job must stop."""
        if self.is_cancelled.is_set():
            raise CancelledError
        if self.began is not None and time.monotonic() - self.began > self.seconds:
            raise TooLongError

    @contextmanager
    def progress(self, description: str, total: float | None) -> Iterator[Advance]:
        """Act as the `progress` of a task: tell the client what is done, and raise an error if the job must stop."""
        done, told = 0.0, time.monotonic()

        def advance(amount: float) -> None:
            nonlocal done, told
            self.check()
            done += amount
            if total and time.monotonic() - told > SECONDS_BETWEEN:
                told = time.monotonic()
                self.tell("progress", {"what": description, "done": min(1.0, done / total)})

        self.check()
        yield advance

    def tell(self, name: str, value: Any) -> None:
        """Send a message to the client, from the job's own thread."""
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self.events.put_nowait, Event(name, value))

    def run(self) -> None:
        """Do the work and send its result or its error."""
        self.began = time.monotonic()
        try:
            self.check()
            self.tell("done", self.work(self))
        except CancelledError:
            pass
        except Exception as error:
            self.tell("error", error)

    async def result(self) -> Any:
        """Wait for the end of the work and return its result, or raise its error."""
        while True:
            event = await self.events.get()
            if event.name == "done":
                return event.value
            if event.name == "error":
                raise event.value


class Workshop:
    """Threads that do jobs.

    Args:
        workers: how many jobs are done at a time.
        waiting: how many more may wait.
        seconds: the longest that a job may take.
    """

    def __init__(self, workers: int = 4, waiting: int = 32, seconds: float = 60.0):
        self.workers = workers
        self.waiting = waiting
        self.seconds = seconds
        self.jobs: set[Job] = set()  # that run or wait
        self.queue: deque[Job] = deque()  # of those that wait
        self.changed = threading.Condition()
        self.is_closing = False
        self.threads: list[threading.Thread] = []  # started when there is work for them

    def submit(self, work: Work) -> Job:
        """Put work into the queue; raise a `BusyError` if the queue is full."""
        job = Job(work, self.seconds, self.drop)
        with self.changed:
            if self.is_closing or len(self.jobs) >= self.workers + self.waiting:
                raise BusyError
            self.jobs.add(job)
            self.queue.append(job)
            if len(self.threads) < self.workers:
                self.threads.append(threading.Thread(target=self.work, name=f"job-{len(self.threads)}", daemon=True))
                self.threads[-1].start()
            self.changed.notify()
        return job

    def drop(self, job: Job) -> None:
        """Remove a job that has not begun from the queue; a running job stops at its next step."""
        with self.changed:
            if job in self.queue:
                self.queue.remove(job)
                self.jobs.discard(job)

    def work(self) -> None:
        """Do one job after another until the workshop closes; each thread runs this."""
        while True:
            with self.changed:
                while not self.queue and not self.is_closing:
                    self.changed.wait()
                if not self.queue:
                    return
                job = self.queue.popleft()
            try:
                job.run()
            finally:
                with self.changed:
                    self.jobs.discard(job)
                del job

    @property
    def num_jobs(self) -> int:
        """How many jobs run or wait."""
        with self.changed:
            return len(self.jobs)

    def close(self) -> None:
        """Stop all jobs at their next step."""
        with self.changed:
            self.is_closing = True
            jobs = list(self.jobs)
            self.changed.notify_all()
        for job in jobs:
            job.cancel()
        for thread in self.threads:
            thread.join()
