"""A run that is killed and resumed ends in the very weights of a run that was not."""

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import SMALL, Cli
from safetensors import safe_open
from torch import Tensor

from unordinal.diffusion.times import SMALLEST_COUNT
from unordinal.runs.checkpoint import latest_checkpoint, load_checkpoint, step_of

STEPS = 250  # dozens of checkpoints, five validations, and times by importance from about the hundredth on


def words_of(book: Path, out: Path, *more: str, steps: int = STEPS) -> list[str]:
    budget = ["--steps", str(steps), "--checkpoint-every", "7", "--validate-every", "50", "--model.times", "importance"]
    words = ["train", "text8/multinomial", "--data", f"text:{book}", *SMALL, *budget, "--threads", "1"]
    return [*words, "--out", str(out), *more]


def command(book: Path, out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "unordinal", *words_of(book, out, *more)]


def weights_of(run: Path) -> dict[str, bytes]:
    with safe_open(run / "model.safetensors", "np") as file:
        return {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118


def final_state(run: Path) -> dict[str, object]:
    checkpoint = latest_checkpoint(run / "checkpoints")
    assert checkpoint is not None
    state = load_checkpoint(checkpoint)
    flat: dict[str, object] = {"step": state["at"]["step"], "best": state["at"]["best_bits"]}
    for part in ("model", "ema", "hooks"):
        flat |= {f"{part}.{name}": value.numpy().tobytes() for name, value in tensors_of(state[part]).items()}
    return flat


def tensors_of(state: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors of a part of a checkpoint; those of the averaged weights lie one level below."""
    return state.get("module", state)


def wait_for_step(process: subprocess.Popen[Any], out: Path, step: int) -> None:
    """Until the run has a folder (step 0) or a checkpoint of at least `step`."""
    while True:
        assert process.poll() is None, "the run ended before it could be stopped"
        reached = latest_checkpoint(out / "checkpoints")
        if (out / "config.json").exists() if step == 0 else reached is not None and step_of(reached) >= step:
            return
        time.sleep(0.005)


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def in_one_go(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "run"
    subprocess.run(command(book, out), check=True, capture_output=True, timeout=250)
    return out


def test_the_run_crosses_what_a_run_can_cross(in_one_go: Path) -> None:
    """Otherwise the tests below would say little."""
    lines = [json.loads(line) for line in (in_one_go / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines if "val_bits_per_dim" in line] == [50, 100, 150, 200, 250]
    checkpoint = latest_checkpoint(in_one_go / "checkpoints")
    assert checkpoint is not None
    assert int(load_checkpoint(checkpoint)["hooks"]["count"].min()) > SMALLEST_COUNT


@pytest.mark.parametrize("attempt", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 12))])
def test_kill_minus_nine_changes_nothing(attempt: int, in_one_go: Path, book: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = subprocess.Popen(command(book, out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    rng = random.Random(attempt)
    wait_for_step(process, out, rng.randrange(0, STEPS * 3 // 4))
    time.sleep(rng.uniform(0.0, 0.1))  # not on the very heels of a checkpoint
    process.send_signal(signal.SIGKILL)
    process.wait()
    reached = latest_checkpoint(out / "checkpoints")
    assert reached is None or step_of(reached) < STEPS
    resumed = subprocess.run(command(book, out, "--resume", "--json"), capture_output=True, timeout=250, check=True)
    assert json.loads(resumed.stdout.splitlines()[-1])["steps"] == STEPS
    assert weights_of(out) == weights_of(in_one_go)
    assert final_state(out) == final_state(in_one_go)
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    whole = [json.loads(line)["step"] for line in (in_one_go / "metrics.jsonl").read_text().splitlines()]
    assert steps == whole


def test_a_signal_saves_and_exits_and_the_run_goes_on(in_one_go: Path, book: Path, tmp_path: Path) -> None:
    """Ctrl-C, then SIGTERM to the run that went on, which then goes on to its end."""
    out = tmp_path / "run"
    for number, step, more in ((signal.SIGINT, 10, ()), (signal.SIGTERM, 110, ("--resume",))):
        words = command(book, out, *more)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for_step(process, out, step)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 128 + number
        assert f"{number.name}: saved at step" in err
        assert "Traceback" not in err
        assert (out / "model.safetensors").exists()
        assert (out / "plots" / "loss.png").exists()
    subprocess.run(command(book, out, "--resume"), capture_output=True, timeout=250, check=True)
    assert weights_of(out) == weights_of(in_one_go)


def test_resuming_a_finished_run_changes_nothing(in_one_go: Path, book: Path, cli: Cli) -> None:
    before = {path: path.stat().st_mtime_ns for path in in_one_go.rglob("[!.]*") if path.is_file()}
    result = cli(*words_of(book, in_one_go, "--resume"))
    assert result.code == 0
    assert f"is already finished ({STEPS} steps). Budgets count from the start of the run" in result.err
    assert before == {path: path.stat().st_mtime_ns for path in in_one_go.rglob("[!.]*") if path.is_file()}


def test_damaged_weights_are_written_anew(in_one_go: Path, book: Path, tmp_path: Path, cli: Cli) -> None:
    out = tmp_path / "run"
    shutil.copytree(in_one_go, out)
    expected = weights_of(out)
    for damage in (b"", (out / "model.safetensors").read_bytes()[:5000]):
        (out / "model.safetensors").write_bytes(damage)
        assert cli(*words_of(book, out, "--resume")).code == 0
        with safe_open(out / "model.safetensors", "np") as file:
            assert sorted(file.keys()) == sorted(expected)


@pytest.mark.parametrize("limit", [60_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_full_disk_while_checkpointing_keeps_the_earlier_one(limit: int, book: Path, tmp_path: Path, cli: Cli) -> None:
    """A limit on the size of files stands in for the full disk: the same error from the same call.

    The smaller one leaves no room for the picture of the loss either.
    """
    out = tmp_path / "run"
    assert cli(*words_of(book, out, steps=14)).code == 0
    kept = latest_checkpoint(out / "checkpoints")
    assert kept is not None
    limited = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "from unordinal.cli import main; main(sys.argv[1:])"
    )
    words = words_of(book, out, "--resume")
    result = subprocess.run([sys.executable, "-c", limited, *words], capture_output=True, text=True, check=False)
    assert result.returncode == 2, result.stderr
    assert "could not write the checkpoint of step 21" in result.stderr
    assert "the one of step 14 is kept" in result.stderr
    assert latest_checkpoint(out / "checkpoints") == kept
    assert not list((out / "checkpoints").glob(".writing-*"))
    assert "Traceback" not in result.stderr
    load_checkpoint(kept)
