"""Work that requests wait for: a few threads, a queue with an end, and jobs that stop when nobody waits any more."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from unordinal.progress import Advance


class BusyError(Exception):
    """The queue is full."""


class CancelledError(Exception):
    """Nobody waits for the job any more."""


class TooLongError(Exception):
    """The job took longer than a job may."""


@dataclass(frozen=True)
class Event:
    """What a job tells the one who waits for it: "waiting", "frame", "done" or "error"."""

    name: str
    value: Any


Work = Callable[["Job"], Any]
"""What a job does, in a thread of its own; it calls `job.check` after every step."""


class Job:
    """One piece of work, and what it has told so far.

    Args:
        work: what to do.
        seconds: the longest that it may take once it has begun.
    """

    def __init__(self, work: Work, seconds: float):
        self.work = work
        self.seconds = seconds
        self.loop = asyncio.get_running_loop()
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        self.is_cancelled = threading.Event()
        self.began: float | None = None
        self.future: Future[None] | None = None

    def cancel(self) -> None:
        """Stop at the next step, or never begin."""
        self.is_cancelled.set()
        if self.future is not None:
            self.future.cancel()

    def check(self, _amount: float = 0.0) -> None:
        """Raise an error if the job is to stop."""
        if self.is_cancelled.is_set():
            raise CancelledError
        if self.began is not None and time.monotonic() - self.began > self.seconds:
            raise TooLongError

    @contextmanager
    def progress(self, _description: str, _total: float | None) -> Iterator[Advance]:
        """A `progress` for tasks that makes them stop when the job is to stop."""
        self.check()
        yield self.check

    def tell(self, name: str, value: Any) -> None:
        """Tell something to the one who waits, from the job's own thread."""
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self.events.put_nowait, Event(name, value))

    def run(self) -> None:
        """Do the work and tell how it ended."""
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
        self.pool = ThreadPoolExecutor(workers, thread_name_prefix="job")
        self.jobs: set[Job] = set()
        self.lock = threading.Lock()

    def submit(self, work: Work) -> Job:
        """Put work into the queue; raise a `BusyError` if there is no place left."""
        job = Job(work, self.seconds)
        with self.lock:
            if len(self.jobs) >= self.workers + self.waiting:
                raise BusyError
            self.jobs.add(job)
        job.future = self.pool.submit(job.run)
        job.future.add_done_callback(lambda _future: self.forget(job))
        return job

    def forget(self, job: Job) -> None:
        with self.lock:
            self.jobs.discard(job)

    @property
    def num_jobs(self) -> int:
        """How many jobs run or wait."""
        with self.lock:
            return len(self.jobs)

    def close(self) -> None:
        """Stop all jobs at their next step."""
        with self.lock:
            jobs = list(self.jobs)
        for job in jobs:
            job.cancel()
        self.pool.shutdown(wait=True, cancel_futures=True)
