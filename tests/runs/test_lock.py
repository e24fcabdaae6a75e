"""One process at a time trains in a folder, and a dead one keeps nobody out."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from unordinal.runs import lock
from unordinal.runs.lock import locked

HOLD = """
import sys, time, pathlib
from unordinal.runs.lock import locked
with locked(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_process_is_refused_until_the_first_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "PATIENCE", 0.2)
    other = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    with pytest.raises(ValueError, match=f"process {other.pid} on .* is writing to"), locked(tmp_path):
        pass
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    other.stdout.close()
    with locked(tmp_path):
        assert str(os.getpid()) in (tmp_path / lock.NAME).read_text()


def test_a_run_that_is_refused_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), locked(tmp_path / "new" / "run"):
        raise RuntimeError
    assert not (tmp_path / "new" / "run").exists()
    with locked(tmp_path / "kept"):
        (tmp_path / "kept" / "config.json").touch()
    assert (tmp_path / "kept" / "config.json").exists()


def test_what_the_lock_file_says_is_not_believed(tmp_path: Path) -> None:
    for text in ("", "[", '{"process": "x", "machine": 1}', "{}"):
        (tmp_path / lock.NAME).write_text(text)
        assert lock.holder(tmp_path / lock.NAME) == "another process"


def test_a_lock_file_that_is_removed_while_one_waits_for_it_locks_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    inside: list[str] = []
    may_go, is_waiting = threading.Event(), threading.Event()

    def second() -> None:
        is_waiting.set()
        with locked(folder):
            inside.append("second")
            may_go.wait(10)
            inside.append("second gone")

    with contextlib.suppress(RuntimeError), locked(folder):
        thread = threading.Thread(target=second)
        thread.start()
        is_waiting.wait(10)
        time.sleep(0.3)
        raise RuntimeError  # refused: the folder goes, and with it the file that the second one waits for
    while not inside:
        time.sleep(0.01)
    assert json.loads((folder / lock.NAME).read_text())["process"] == os.getpid()
    may_go.set()
    thread.join()
