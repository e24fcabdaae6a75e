"""Any number of processes learns the same, and a run goes on with another number of them."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import LEARNED, small_flags
from together import TESTS, kill_one_of, launched, wait_for_checkpoint

from unordinal.diffusion.times import SMALLEST_COUNT
from unordinal.parallel.group import ALONE, Group, joined

SOME = ["multinomial", "arm+ngrams", "absorbing", "vae"]
EVERY = [*LEARNED, "arm+ngrams"]
TEXT = "the quick brown fox jumps over the lazy dog and runs away " * 60


def together(processes: int, folder: Path, dtype: str, steps: int, names: list[str]) -> dict[str, Any]:
    process = launched(processes, str(TESTS / "together.py"), str(folder), dtype, str(steps), *names)
    output, _ = process.communicate(timeout=1500)
    assert process.returncode == 0, output[-9000:]
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
            assert alone[name]["validation"] == pytest.approx(others[name]["validation"], rel=1e-9), (name, size)
            assert alone[name]["hooks"].keys() == others[name]["hooks"].keys()
            for key, value in alone[name]["hooks"].items():
                assert others[name]["hooks"][key] == pytest.approx(value, rel=1e-6), (name, size, key)
    assert min(alone["multinomial"]["hooks"]["count"]) > SMALLEST_COUNT  # importance sampling has begun


SHARDED = [f"{kind}+fsdp-{way}" for kind in ("arm", "absorbing") for way in ("sgd", "adam")] + ["arm+fsdp-adamw"]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("names", "size"),
    [
        (["absorbing+fsdp-sgd"], 2),
        pytest.param([*SHARDED, "multinomial+fsdp-sgd", "uniform+fsdp-adam"], 4, marks=pytest.mark.slow),
    ],
    ids=["some", "every"],
)
def test_sharded_weights_learn_what_whole_ones_do(names: list[str], size: int, tmp_path: Path) -> None:
    (tmp_path / "book.txt").write_text(TEXT)
    alone = together(1, tmp_path, "float64", 10, [name.replace("fsdp-", "") for name in names])
    sharded = together(size, tmp_path, "float64", 10, names)
    for name in names:
        found, expected = sharded[name], alone[name.replace("fsdp-", "")]
        assert found["sharded"]
        assert found["losses"] == pytest.approx(expected["losses"], rel=1e-9), name
        assert found["validation"] == pytest.approx(expected["validation"], rel=1e-9), name


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
    words += [
        "--validate-examples",
        "4",
        "--validate-every",
        "4",
        "--optim.no-decay-to-zero",
        "--optim.optimizer",
        "adamw",
    ]

    def train(processes: int, steps: int, out: str, *more: str) -> list[float]:
        words_more = [*more, "--steps", str(steps), "--out", str(tmp_path / out), "--resume"]
        process = launched(processes, "-m", "unordinal", *words, *words_more)
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0, output[-9000:]
        assert output.count("Done: ") == 1  # one process talks
        lines = [json.loads(line) for line in (tmp_path / out / "metrics.jsonl").read_text().splitlines()]
        return [line["val_bits_per_dim"] for line in lines if "val_bits_per_dim" in line]

    whole = train(1, 16, "whole")
    train(2, 4, "changed")
    train(1, 8, "changed")
    train(2, 12, "changed", "--strategy", "fsdp")
    changed = train(4, 16, "changed")
    assert changed == pytest.approx(whole, rel=1e-5)


@pytest.mark.timeout(600)
def test_a_process_that_is_killed_ends_the_group_and_the_run_goes_on(book: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    words = ["-m", "unordinal", "train", "arm", "--data", str(book), "--batch-size", "4", "--length", "16"]
    words += ["--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"]
    words += ["--validate-examples", "4", "--checkpoint-every", "5", "--out", str(out)]
    process = launched(2, *words, "--steps", "100000")
    wait_for_checkpoint(process, out)
    kill_one_of(process)
    process.communicate(timeout=60)
    assert process.returncode != 0
    step = max(int(path.name[5:]) for path in out.glob("checkpoints/step-*"))
    again = launched(2, *words, "--steps", str(step + 10), "--resume")
    output, _ = again.communicate(timeout=300)
    assert again.returncode == 0, output[-3000:]
    assert f"Done: {step + 10} steps" in output


ARM = ["arm", "--length", "16", "--batch-size", "4", "--model.net.width", "16", "--model.net.num-blocks", "1"]
ARM += ["--model.net.num-heads", "2", "--validate-examples", "4", "--checkpoint-every", "5"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_processes_that_torchrun_starts_anew_go_on_in_their_folder(book: Path, tmp_path: Path) -> None:
    words = ("-m", "unordinal", "train", *ARM, "--data", str(book), "--steps", "200")
    process = launched(2, *words, how=("--standalone", "--max-restarts", "2"), cwd=tmp_path)
    wait_for_checkpoint(process, tmp_path)
    kill_one_of(process)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output[-9000:]
    assert "Continuing from step" in output
    assert "Done: 200 steps" in output
    assert len(list(tmp_path.glob("runs/*"))) == 1
    process = launched(2, *words, "--out", "runs/arm-tiny", how=("--standalone", "--max-restarts", "1"), cwd=tmp_path)
    output, _ = process.communicate(timeout=300)
    assert process.returncode != 0  # a folder that another job made is not gone on with, however often it is tried
    assert output.count("already holds a run") == 2


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_machines_train_evaluate_and_sample_as_one_process_does(book: Path, tmp_path: Path) -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]

    def on_two_machines(*words: str) -> list[str]:
        how = ("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "job")
        agents = [launched(1, "-m", "--", "unordinal", *words, how=how, cwd=tmp_path) for _ in range(2)]
        outputs = [agent.communicate(timeout=300)[0] for agent in agents]
        assert [agent.returncode for agent in agents] == [0, 0], outputs
        return outputs

    def alone(*words: str) -> str:
        command = [sys.executable, "-m", "unordinal", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    train = ("train", *ARM, "--accumulate", "2", "--data", str(book), "--steps", "12")
    outputs = on_two_machines(*train, "--out", "two")
    assert sum(text.count("Done: 12 steps") for text in outputs) == 1
    alone(*train, "--out", "one")
    score = ("evaluate", "one", "--json", "--batch-size", "2", "--num-examples", "9")
    both = [json.loads(text.splitlines()[-1]) for text in (alone(*score), max(on_two_machines(*score), key=len))]
    assert both[0]["bits_per_dim"] == pytest.approx(both[1]["bits_per_dim"], rel=1e-12)
    sample = ("sample", "one", "--num", "100", "--batch-size", "1", "--out")
    alone(*sample, "a")
    on_two_machines(*sample, "b")
    names = sorted(path.name for path in (tmp_path / "a").glob("[!.]*"))
    assert len(names) == 9  # four files of classes, four of text, and the manifest
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("recipe", ["absorbing", "argmax-ar"])
def test_bounds_are_the_same_whatever_the_number_of_processes(recipe: str, book: Path, tmp_path: Path) -> None:
    words = [recipe, "--data", str(book), *small_flags(recipe, "text"), "--steps", "3", "--out", str(tmp_path / "run")]
    trained = launched(1, "-m", "unordinal", "train", *words)
    assert "Done: 3 steps" in trained.communicate(timeout=300)[0]
    ways = [["--repeats", "2"]]
    ways += [["--bound", "iwbo", "--k", "4"]] if recipe == "argmax-ar" else [["--order", "random"]]
    for way in ways:
        found = []
        for processes in (1, 3):
            score = ["evaluate", str(tmp_path / "run"), "--num-examples", "5", "--batch-size", "2", "--json", *way]
            process = launched(processes, "-m", "unordinal", *score, "--invalid-samples", "0")
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output[-9000:]
            lines = [line for line in output.splitlines() if line.startswith("{")]
            assert len(lines) == 1
            found.append(json.loads(lines[0])["bits_per_dim"])
        assert found[0] == pytest.approx(found[1], rel=1e-6), way


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
        assert group.broadcast({"a": 1}) == {"a": 1}
        assert group.broadcast_state(None) is None
        assert group.largest(3) == 3
        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.full((2,), 3.0)
        group.sum_gradients([weight], torch.zeros(1))
        assert weight.grad.tolist() == [3.0, 3.0]
