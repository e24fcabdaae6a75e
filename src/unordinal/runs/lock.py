"""Let one process at a time train in a folder."""

import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks; there, two runs on one folder are not found out
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"
JOB = "TORCHELASTIC_RUN_ID"  # what torchrun calls the processes that it starts, and restarts after a failure
PATIENCE = 5.0  # seconds in which a process that is being stopped gives its lock up


@contextmanager
def locked(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold the lock of a run's folder; raise a ValueError that names the process that holds it.

    Yields a function that notes this job of torchrun as the one whose run this is, for `was_this_job`.

    The operating system frees the lock when the process that holds it ends, however it ends: a dead process does not
    keep the lock.
    """
    if fcntl is None or (folder.exists() and not folder.is_dir()):  # the latter is an error elsewhere
        yield lambda: None
        return
    is_new = not folder.exists()
    file = held(folder)
    try:
        write_notes(file, job=job_of(folder))
        yield partial(write_notes, file, job=current_job())
    finally:
        with suppress(OSError):
            if is_new and [found.name for found in folder.iterdir()] == [NAME]:  # the run did not start
                shutil.rmtree(folder)
        os.close(file)


def held(folder: Path) -> int:
    """Open the lock file of a folder and lock it; return its descriptor."""
    path = folder / NAME
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except OSError as error:
            raise ValueError(f"cannot write to {folder}: {error.strerror}; choose another `out`") from error
        try:
            wait_for(file, path, folder)
            with suppress(OSError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # another process has removed the file: it locks nothing any more


def write_notes(file: int, *, job: str) -> None:
    notes = {"process": os.getpid(), "machine": socket.gethostname(), "job": job}
    os.ftruncate(file, 0)
    os.pwrite(file, json.dumps(notes).encode(), 0)


def wait_for(file: int, path: Path, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ValueError(
                    f"{holder(path)} is writing to {folder}; wait for it, stop it, or choose another `out`"
                ) from error
            time.sleep(0.1)


def holder(path: Path) -> str:
    """Return which process holds the lock, as far as its file tells."""
    try:
        notes = json.loads(path.read_text()[:1000])
        return f"process {int(notes['process'])} on {notes['machine']!s}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def was_this_job(folder: Path) -> bool:
    """Return whether the run in a folder was last trained by the same job of torchrun as this process."""
    return bool(job_of(folder)) and job_of(folder) == current_job()


def current_job() -> str:
    """Return what identifies the job of torchrun that this process belongs to; empty if there is no such job."""
    job = os.environ.get(JOB, "")
    return f"{job}/{socket.gethostname()}/{os.getppid()}" if job == "none" else job  # torchrun's own process is unique


def job_of(folder: Path) -> str:
    try:
        return str(json.loads((folder / NAME).read_text()[:1000])["job"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""
