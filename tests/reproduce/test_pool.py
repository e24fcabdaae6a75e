"""Jobs in worker processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from unordinal.progress import silent
from unordinal.reproduce.jobs import Job
from unordinal.reproduce.pool import Pool
from unordinal.reproduce.work import DONE, FAILED, KEPT, Place

TOY = Job("toy", "scores", "toy/discrete-flow", "toy", "eight-gaussians", "tiny", 0.02, settings={"net.width": 8})


def test_one_row_that_fails_does_not_end_the_others(tmp_path: Path) -> None:
    told: list[str] = []
    wrong = replace(TOY, key="wrong", source="nothing-here.txt")
    found = Pool(tmp_path, 2, 1, told.append).run([wrong, TOY, replace(TOY, key="other", seed=1)], silent)
    assert {key: end.state for key, end in found.items()} == {"toy": DONE, "other": DONE, "wrong": FAILED}
    assert "nothing-here.txt" in found["wrong"].reason
    assert sorted(line.partition(":")[0] for line in told) == ["other", "toy", "wrong"]
    again = Pool(tmp_path, 1, 1, told.append).run([TOY], silent)
    assert again["toy"].state == KEPT
    assert len(told) == 3  # results that were there already are not told


def test_a_worker_that_dies_fails_its_row_only(tmp_path: Path) -> None:
    pool = Pool(tmp_path, 1, 1, lambda _line: None)
    long = replace(TOY, key="long", minutes=5.0)

    def kill() -> None:
        deadline = time.monotonic() + 60
        while not Place(tmp_path).run("long").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(pool.workers[0].process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    found = pool.run([long, TOY], silent)
    killer.join()
    assert found["long"].state == FAILED
    assert found["long"].reason == "the worker process died"
    assert found["toy"].state == DONE


@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_what_was_trained_is_kept_when_the_command_is_killed(tmp_path: Path, sent: signal.Signals) -> None:
    """The worker notices that the command has ended, saves the run and stops; the next command continues it."""
    words = ["reproduce", "eight-gaussians", "--minutes", "0.1", "--jobs", "1", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "unordinal", *words]
    place = Place(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background may ignore it
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    signal.signal(signal.SIGINT, before)
    metrics = place.run("toy-argmax-ar") / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.is_file() and metrics.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(sent)
    told, _ = process.communicate(timeout=120)
    if sent == signal.SIGINT:
        assert process.returncode == 130
        assert "the same command continues" in told
        assert "Traceback" not in told
        assert (tmp_path / "report.html").is_file()
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    found = place.found("toy-argmax-ar")
    assert found is not None
    assert found["trained"]["seconds"] < 0.1 * 60 * 1.5  # both parts together have the minutes of one row
    assert not list(tmp_path.glob("**/*.tmp"))
