"""Processes that tests start together, and what those do that compare numbers of processes: train every recipe.

torchrun --nproc-per-node 2 tests/together.py FOLDER DTYPE STEPS RECIPE...
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from conftest import small_flags

from unordinal.cli.parsing import Command, options_of, read
from unordinal.cli.train import TrainArgs, setting_options
from unordinal.cli.words import split
from unordinal.config import RunConfig
from unordinal.data import source_of
from unordinal.overrides import with_settings
from unordinal.parallel.group import joined
from unordinal.parallel.sharding import is_sharded
from unordinal.recipes import RECIPES, configured
from unordinal.runs.folder import RunFolder
from unordinal.train.loop import Loop

IMPORTANCE = ["--model.num-steps", "10", "--model.times", "stratified-importance"]
MORE = {
    "ngrams": ["--model.ngrams.orders", "2", "3", "--model.ngrams.rows", "64"],
    "sgd": ["--optim.optimizer", "adam"],
    "adam": ["--optim.optimizer", "adam"],
    "adamw": ["--optim.optimizer", "adamw", "--optim.clip", "0.5", "--recompute"],
}


Process = subprocess.Popen[str]
TESTS = Path(__file__).parent


def launched(processes: int, *words: str, how: tuple[str, ...] = ("--standalone",), **settings: Any) -> Process:
    """Start torchrun with so many processes."""
    command = [sys.executable, "-m", "torch.distributed.run", *how, "--nproc-per-node", str(processes)]
    env = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}",
    }
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return subprocess.Popen([*command, *words], env=env, **pipes, **settings)


def wait_for_checkpoint(process: Process, folder: Path) -> None:
    deadline = time.monotonic() + 120
    while not list(folder.glob("**/checkpoints/step-*")):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()[0][-3000:]
        time.sleep(0.05)


def kill_one_of(process: Process) -> None:
    """Kill a child of torchrun, the way the kernel does when memory runs out."""
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    os.kill(int(children.stdout.split()[-1]), signal.SIGKILL)


def config_of(words: list[str]) -> RunConfig:
    """The configuration that `unordinal train` makes of its words."""
    given = split(words)
    base = configured(given.plain[0], given.value("--size") or "tiny", data=source_of(given.value("--data")))
    options = setting_options(base)
    values = read(given, Command("unordinal train", "", ()), [*options_of(TrainArgs), *options])
    return with_settings(base, {option.key: values[option.key] for option in options if option.key in values})


def main(folder: Path, dtype: str, steps: int, names: list[str]) -> None:
    torch.set_default_dtype(getattr(torch, dtype))
    found = {}
    with joined() as group:
        for name in names:
            kind, _, extra = name.partition("+")
            data = "streets" if RECIPES[kind].takes == ("maps",) else f"text:{folder / 'book.txt'}"
            words = [kind, "--data", data, *small_flags(kind, data), "--batch-size", "8", "--accumulate", "4"]
            words += ["--steps", str(steps), *(IMPORTANCE if kind == "multinomial" else [])]
            words += MORE.get(extra.removeprefix("fsdp-"), [])
            words += ["--strategy", "fsdp"] if extra.startswith("fsdp-") else []
            config = config_of(words)
            with group.one_first():
                loaded = config.data.load()
            torch.manual_seed(0)
            model = config.model.build(loaded.spec).to(getattr(torch, dtype))
            train = replace(config.train, validate_examples=4)
            loop = Loop(model, loaded, train, config.optim, RunFolder(folder / "run"), torch.device("cpu"), group)
            if extra.endswith("sgd"):  # which, unlike Adam, sees a wrong scale of the gradient
                loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=0.1)
                loop.optimizer.param_groups[0]["peak_lr"] = 0.1
            losses = [loop.train_step()["loss"] for _ in range(steps)]
            state = {key: value.tolist() for key, value in loop.hooks.state().items()}
            bits = loop.validate()["val_bits_per_dim"]
            found[name] = {"losses": losses, "hooks": state, "validation": bits, "sharded": is_sharded(loop.model)}
        if group.is_first:
            (folder / f"{dtype}-{group.size}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:])
    os._exit(0)  # as the command line does
