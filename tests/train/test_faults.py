"""Whatever happens to a run, it ends with one clear line and goes on where it stopped, in processes of its own.

Kills and signals of one process are in test_resume, damage to checkpoints in test_checkpoint.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, refused
from safetensors import safe_open
from together import Process, kill_one_of, launched

from unordinal.runs.checkpoint import latest_checkpoint, step_of

STEPS = 60
ARM = ["train", "arm", "--length", "16", "--batch-size", "4", "--accumulate", "2", "--model.net.width", "16"]
ARM += ["--model.net.num-blocks", "1", "--model.net.num-heads", "2", "--validate-examples", "4"]
ARM += ["--validate-every", "20", "--checkpoint-every", "5", "--lr", "0.01"]


def words_of(book: Path, out: Path, *more: str, steps: int = STEPS) -> list[str]:
    return [*ARM, "--data", str(book), "--out", str(out), "--steps", str(steps), *more]


def weights_of(run: Path) -> dict[str, bytes]:
    with safe_open(run / "model.safetensors", "np") as file:
        return {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118


def started(words: list[str], **settings: Any) -> Process:
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([sys.executable, "-m", "unordinal", *words], **pipes, **settings)


def wait_for_step(process: Process, out: Path, step: int) -> None:
    deadline = time.monotonic() + 120
    while (reached := latest_checkpoint(out / "checkpoints")) is None or step_of(reached) < step:
        assert process.poll() is None, process.communicate()[0][-2000:]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def with_file_limit(limit: int, words: list[str]) -> "subprocess.CompletedProcess[str]":
    """Run a command that can write no file larger than `limit` bytes, which stands in for a full disk."""
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "from unordinal.cli import main; main(sys.argv[1:])"
    )
    return subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def in_one_go(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing happened to, of two processes."""
    out = tmp_path_factory.mktemp("whole") / "run"
    process = launched(2, "-m", "unordinal", *words_of(book, out))
    output, _ = process.communicate(timeout=250)
    assert process.returncode == 0, output[-9000:]
    return out


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("attempt", range(10))
def test_a_group_that_loses_one_or_all_goes_on_as_if_nothing_had_happened(
    attempt: int, in_one_go: Path, book: Path, tmp_path: Path
) -> None:
    out, rng = tmp_path / "run", random.Random(attempt)
    process = launched(2, "-m", "unordinal", *words_of(book, out), start_new_session=True)
    wait_for_step(process, out, rng.randrange(0, STEPS - 20))
    time.sleep(rng.uniform(0.0, 0.05))
    if attempt % 2:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        kill_one_of(process)
    process.communicate(timeout=60)  # the group ends within a minute
    assert process.returncode != 0
    again = launched(2, "-m", "unordinal", *words_of(book, out, "--resume"))
    output, _ = again.communicate(timeout=250)
    assert again.returncode == 0, output[-9000:]
    assert weights_of(out) == weights_of(in_one_go)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [2.0, 4.0, None])
def test_processes_end_when_torchrun_is_killed(seconds: float | None, book: Path, tmp_path: Path) -> None:
    """At any moment: also while they still look for each other."""
    process = launched(2, "-m", "unordinal", *words_of(book, tmp_path / "run", steps=1_000_000))
    if seconds is None:
        wait_for_step(process, tmp_path / "run", 5)
    else:
        time.sleep(seconds)
    process.kill()
    process.communicate(timeout=60)  # the processes hold the other end of the pipe until they end


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_group_that_is_terminated_saves_within_its_grace(in_one_go: Path, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = launched(2, "-m", "unordinal", *words_of(book, out))
    wait_for_step(process, out, 5)
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    output, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert "SIGTERM: saved at step" in output
    again = launched(2, "-m", "unordinal", *words_of(book, out, "--resume"))
    output, _ = again.communicate(timeout=250)
    assert again.returncode == 0, output[-9000:]
    assert weights_of(out) == weights_of(in_one_go)


def test_the_second_run_on_a_folder_is_refused_and_that_of_a_dead_one_taken_over(
    book: Path, tmp_path: Path, cli: Cli
) -> None:
    out = tmp_path / "run"
    process = started(words_of(book, out, steps=1_000_000))
    wait_for_step(process, out, 5)
    refused(cli(*words_of(book, out, "--resume", steps=20)), f"process {process.pid} on", "is writing to")
    process.kill()
    process.communicate()
    reached = latest_checkpoint(out / "checkpoints")
    assert reached is not None
    result = cli(*words_of(book, out, "--resume", steps=step_of(reached) + 5))
    assert result.code == 0, result.err
    assert "Continuing from step" in result.err


def test_a_full_disk_while_publishing_keeps_the_checkpoint(book: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    assert cli(*words_of(book, out, steps=20)).code == 0
    expected = weights_of(out)
    size = (out / "model.safetensors").stat().st_size
    (out / "model.safetensors").unlink()  # as if the crash had come between the checkpoint and the publication
    full = with_file_limit(size - 100, words_of(book, out, "--resume", steps=20))
    assert full.returncode == 2, full.stderr
    assert "could not write" in full.stderr
    assert "the checkpoint is kept" in full.stderr
    assert "Traceback" not in full.stderr
    assert not list(out.glob(".model*"))
    assert cli(*words_of(book, out, "--resume", steps=20)).code == 0
    assert weights_of(out) == expected


def test_a_loss_that_is_no_number_ends_the_run_and_a_smaller_rate_goes_on(book: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    words = [word if word != "0.01" else "1e30" for word in words_of(book, out, "--optim.warmup", "1")]
    result = cli(*words)
    assert result.code == 1
    assert "the loss is no longer finite at step" in result.complaint
    assert "continue with --resume and a smaller --lr" in result.complaint


def test_data_that_have_changed_or_are_shorter_are_refused(book: Path, tmp_path: Path, cli: Cli) -> None:
    out, text = tmp_path / "run", tmp_path / "text.txt"
    text.write_text(book.read_text())
    assert cli(*words_of(text, out, steps=5)).code == 0
    for changed in (book.read_text().replace("e", "a"), book.read_text()[:-2000], ""):
        text.write_text(changed)
        result = cli(*words_of(text, out, "--resume", steps=10))
        assert result.code == 2
        assert result.complaint
    text.unlink()
    refused(cli(*words_of(text, out, "--resume", steps=10)), "text.txt")
    text.write_text(book.read_text())
    assert cli(*words_of(text, out, "--resume", steps=10)).code == 0
    lines = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert lines == sorted(lines)
