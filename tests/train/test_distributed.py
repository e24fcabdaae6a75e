"""Any number of processes learns the same, and a run goes on with another number of them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from unordinal.diffusion.times import SMALLEST_COUNT
from unordinal.recipes import RECIPES
from unordinal.train.distributed import ALONE, Group, joined

TESTS = Path(__file__).parents[1]
SOME = ["multinomial", "arm+ngrams", "absorbing"]
EVERY = [*RECIPES, "arm+ngrams"]
TEXT = "the quick brown fox jumps over the lazy dog and runs away " * 60


def launched(processes: int, *words: str, **settings: Any) -> "subprocess.Popen[str]":
    """Start torchrun with so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}"}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*command, *words], env=env, **pipes, **settings)


def together(processes: int, folder: Path, dtype: str, steps: int, names: list[str]) -> dict[str, Any]:
    process = launched(processes, str(TESTS / "together.py"), str(folder), dtype, str(steps), *names)
    output, _ = process.communicate(timeout=1500)
    assert process.returncode == 0, output[-3000:]
    return json.loads((folder / f"{dtype}-{processes}.json").read_text())


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("names", "sizes"), [(SOME, (2,)), pytest.param(EVERY, (2, 4), marks=pytest.mark.slow)], ids=["some", "every"]
)
def test_any_number_of_processes_learns_the_same(names: list[str], sizes: tuple[int, ...], tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(TEXT)
    alone = together(1, tmp_path, "float64", 20, names)
    for size in sizes:
        others = together(size, tmp_path, "float64", 20, names)
        for name in names:
            for ours, theirs in zip(alone[name]["losses"], others[name]["losses"], strict=True):
                assert theirs == pytest.approx(ours, rel=1e-9), (name, size)
            assert alone[name]["hooks"].keys() == others[name]["hooks"].keys()
            for key, value in alone[name]["hooks"].items():
                assert others[name]["hooks"][key] == pytest.approx(value, rel=1e-6), (name, size, key)
    assert min(alone["multinomial"]["hooks"]["count"]) > SMALLEST_COUNT  # importance sampling has begun


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_any_number_of_processes_takes_the_same_first_step_in_single_precision(tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(TEXT)
    alone = together(1, tmp_path, "float32", 2, EVERY)
    for size in (2, 4):
        others = together(size, tmp_path, "float32", 2, EVERY)
        for name in EVERY:
            assert others[name]["losses"] == pytest.approx(alone[name]["losses"], rel=1e-5), (name, size)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_goes_on_with_another_number_of_processes(book: Path, tmp_path: Path) -> None:
    words = ["train", "absorbing", "--data", str(book), "--batch-size", "4", "--accumulate", "4", "--length", "16"]
    words += ["--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"]
    words += ["--validate-examples", "4", "--validate-every", "4", "--optim.no-decay-to-zero"]

    def train(processes: int, steps: int, out: str) -> list[float]:
        more = ["--steps", str(steps), "--out", str(tmp_path / out), "--resume"]
        process = launched(processes, "-m", "unordinal", *words, *more)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output[-3000:]
        assert output.count("Done: ") == 1  # one process talks
        lines = [json.loads(line) for line in (tmp_path / out / "metrics.jsonl").read_text().splitlines()]
        return [line["val_bits_per_dim"] for line in lines if "val_bits_per_dim" in line]

    whole = train(1, 12, "whole")
    train(2, 4, "changed")
    train(1, 8, "changed")
    changed = train(4, 12, "changed")
    assert changed == pytest.approx(whole, rel=1e-5)


@pytest.mark.timeout(600)
def test_a_process_that_is_killed_ends_the_group_and_the_run_goes_on(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["-m", "unordinal", "train", "arm", "--data", str(book), "--batch-size", "4", "--length", "16"]
    words += ["--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"]
    words += ["--validate-examples", "4", "--checkpoint-every", "5", "--out", str(out)]
    process = launched(2, *words, "--steps", "100000")
    deadline = time.monotonic() + 120
    while not list(out.glob("checkpoints/step-*")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0][-3000:]
        time.sleep(0.05)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode != 0
    step = max(int(path.name[5:]) for path in out.glob("checkpoints/step-*"))
    again = launched(2, *words, "--steps", str(step + 10), "--resume")
    output, _ = again.communicate(timeout=300)
    assert again.returncode == 0, output[-3000:]
    assert f"Done: {step + 10} steps" in output


def test_a_batch_must_have_a_part_for_every_process(book: Path, tmp_path: Path) -> None:
    words = ["train", "arm", "--data", str(book), "--batch-size", "1", "--steps", "2", "--length", "16"]
    process = launched(2, "-m", "unordinal", *words, "--out", str(tmp_path / "run"))
    output, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "2 processes need a --batch-size of at least 2" in output


def test_a_group_of_one_does_everything_itself() -> None:
    with joined() as group:
        assert group == ALONE == Group()
        assert list(group.share_of(3)) == [0, 1, 2]
        assert group.told({"a": 1}) == {"a": 1}
        assert group.told_state(None) is None
        assert group.largest(3) == 3
        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.full((2,), 3.0)
        group.sum_gradients([weight], torch.zeros(1))
        assert weight.grad.tolist() == [3.0, 3.0]
