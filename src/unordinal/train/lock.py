"""One process at a time trains in a folder."""

import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows has no such locks; there, two runs on one folder are not found out
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"
PATIENCE = 5.0  # seconds in which a process that is being stopped gives its lock up


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder; raise a ValueError that names the process that holds it.

    The operating system frees the lock when the process that holds it ends, however it ends: a dead process keeps
    nobody out.
    """
    if fcntl is None or (folder.exists() and not folder.is_dir()):  # what is no folder is refused elsewhere
        yield
        return
    path, is_new = folder / NAME, not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    except OSError as error:
        raise ValueError(f"cannot write to {folder}: {error.strerror}; choose another `out`") from error
    try:
        wait_for(file, path, folder)
        os.ftruncate(file, 0)
        os.pwrite(file, json.dumps({"process": os.getpid(), "machine": socket.gethostname()}).encode(), 0)
        yield
    finally:
        if is_new and [found.name for found in folder.iterdir()] == [NAME]:  # the run was refused: leave no trace of it
            shutil.rmtree(folder)
        os.close(file)


def wait_for(file: int, path: Path, folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ValueError(
                    f"{holder(path)} is training in {folder}; wait for it, stop it, or choose another `out`"
                ) from error
            time.sleep(0.1)


def holder(path: Path) -> str:
    """Return which process holds the lock, as far as its file tells."""
    try:
        notes = json.loads(path.read_text()[:1000])
        return f"process {int(notes['process'])} on {notes['machine']!s}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
