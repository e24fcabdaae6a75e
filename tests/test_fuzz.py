"""Mutated files and random words get one clear line; random settings train, or get one too."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import LEARNED, small_flags
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unordinal.cli import run as run_command
from unordinal.recipes import RECIPES


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("files", "lines"), [(400, 20), pytest.param(10_000, 200, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_mutated_files_and_random_words_get_one_line(files: int, lines: int, tmp_path: Path) -> None:
    script = Path(__file__).with_name("fuzzing.py")
    words = [str(script), str(tmp_path), "--files", str(files), "--lines", str(lines), "--seed", "2"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["files"]["findings"] == []
    assert found["lines"]["findings"] == []
    assert found["files"]["share past"] > 0.2  # a fifth of them get past the first check of their format
    assert found["lines"]["codes"].keys() == {"0", "2"}


@st.composite
def valid_settings(draw: st.DrawFn) -> list[str]:
    parts = draw(st.sampled_from((1, 2, 3)))
    optimizer = draw(st.sampled_from(("adam", "adamw", "adamax", "muon")))
    words = ["--batch-size", str(parts * draw(st.sampled_from((1, 2)))), "--accumulate", str(parts)]
    words += ["--optim.optimizer", optimizer, "--optim.ema", draw(st.sampled_from(("0", "0.5", "0.99")))]
    words += ["--lr", f"{draw(st.floats(1e-6, 1e-2)):g}", "--seed", str(draw(st.integers(0, 2**63 - 1)))]
    words += ["--optim.warmup", str(draw(st.integers(0, 5))), "--keep", draw(st.sampled_from(("best", "last")))]
    words += ["--optim.clip", f"{draw(st.floats(1e-3, 1e3)):g}"] if draw(st.booleans()) else []
    words += ["--optim.beta2", f"{draw(st.floats(0.5, 0.999)):g}", "--mutate", f"{draw(st.floats(0, 0.5)):g}"]
    words += ["--validate-every", str(draw(st.integers(1, 4))), "--checkpoint-every", str(draw(st.integers(1, 4)))]
    return words


INVALID = [
    *(["--batch-size", "0"], ["--batch-size", "-3"], ["--accumulate", "7"], ["--lr", "0"], ["--lr", "nan"]),
    *(["--lr", "inf"], ["--optim.ema", "1"], ["--optim.ema", "-0.1"], ["--optim.beta2", "1.5"], ["--seed", "-1"]),
    *(["--optim.clip", "0"], ["--optim.warmup", "-1"], ["--mutate", "1"], ["--validate-every", "0"], ["--steps", "0"]),
    *(["--optim.optimizer", "sgdd"], ["--keep", "none"], ["--batch-size", "x"], ["--no-such-flag", "1"]),
    *(["--checkpoint-every", "0"], ["--validate-examples", "0"], ["--precision", "bf16"], ["--minutes", "0"]),
]


def words_of(name: str, book: Path, out: Path) -> list[str]:
    data = "streets" if RECIPES[name].takes == ("maps",) else f"text:{book}"
    return ["train", name, "--data", data, *small_flags(name, data), "--steps", "3", "--out", str(out)]


def checked(name: str, more: list[str], book: Path, out: Path) -> None:
    """A random valid configuration trains three steps, saves, loads, scores and samples."""
    shutil.rmtree(out, ignore_errors=True)
    words = [*words_of(name, book, out), "--validate-examples", "2", *more]
    assert run_command(words) == 0, words
    assert json.loads((out / "config.json").read_text())["run"]["recipe"] == name
    assert run_command(["evaluate", str(out), "--num-examples", "2", "--invalid-samples", "0"]) == 0, words
    assert run_command(["sample", str(out), "--num", "1"]) == 0, words


CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


@settings(max_examples=5, deadline=None, suppress_health_check=CHECKS, derandomize=True)
@given(name=st.sampled_from(LEARNED), more=valid_settings())
def test_a_valid_configuration_trains_scores_and_samples(
    name: str, more: list[str], book: Path, tmp_path: Path
) -> None:
    checked(name, more, book, tmp_path / "run")


@pytest.mark.slow
@pytest.mark.timeout(3000)
@settings(max_examples=80, deadline=None, suppress_health_check=CHECKS)
@given(name=st.sampled_from(LEARNED), more=valid_settings())
def test_many_valid_configurations_train_score_and_sample(
    name: str, more: list[str], book: Path, tmp_path: Path
) -> None:
    checked(name, more, book, tmp_path / "run")


@settings(max_examples=40, deadline=None, suppress_health_check=CHECKS, derandomize=True)
@given(name=st.sampled_from(LEARNED), wrong=st.sampled_from(INVALID))
def test_an_invalid_configuration_gets_one_line(
    name: str, wrong: list[str], book: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = words_of(name, book, tmp_path / "run")
    if wrong[0] == "--minutes":
        words[words.index("--steps") : words.index("--steps") + 2] = []
    capfd.readouterr()
    assert run_command([*words, *wrong]) == 2
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("unordinal: ")]
    assert len(lines) == 1
    assert not (tmp_path / "run").exists()
