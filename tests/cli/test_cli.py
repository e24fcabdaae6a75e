"""The command line as a whole: usage, unknown names, tracebacks, and every preset from training to samples."""

import importlib
import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import SMALL, Cli, refused, small_flags

import unordinal
from unordinal.api import fit
from unordinal.cli import COMMANDS
from unordinal.cli.words import Words
from unordinal.experiments import EXPERIMENTS
from unordinal.settings import settings_of

TRAIN = ("train", "text8/multinomial", *SMALL, "--steps", "2")
BYTES = ("enwik8/multinomial", "enwik8/argmax-ar")  # its other presets are twins of those of text8
PRESETS = sorted(name for name in EXPERIMENTS if not name.startswith("enwik8/") or name in BYTES)


def test_help_names_every_command_and_gives_examples(cli: Cli) -> None:
    for words in ((), ("--help",), ("-h",)):
        result = cli(*words)
        assert result.code == 0
        assert all(name in result.out for name in COMMANDS)
    for name in COMMANDS:
        arguments = ("train", "text8/multinomial") if name == "train" else (name,)
        result = cli(*arguments, "--help")
        assert result.code == 0
        assert "unordinal " in result.out
        assert "examples:\n  unordinal " in result.out


def test_names_that_do_not_exist(cli: Cli) -> None:
    refused(cli("trian"), "unknown command 'trian'; did you mean train?")
    refused(cli("train", "text8/multinomal"), "unknown experiment 'text8/multinomal'; did you mean text8/multinomial?")
    refused(cli("train"), "which model?")
    refused(cli("train", "--steps", "3"), "which model?")
    refused(cli("train", "text8/multinomial", "--size", "huge"), "unknown size 'huge'; expected tiny, small, paper")
    refused(cli(*TRAIN, "--batchsize", "3"), "--batch-size")
    refused(cli("evaluate", "run", "--spilt", "val"), "--split")
    refused(cli(*TRAIN, "--data", "txet:a"), "did you mean text:PATH?")


def test_debug_shows_the_traceback(cli: Cli) -> None:
    with pytest.raises(ValueError, match="no run at nowhere"):
        cli("evaluate", "nowhere", "--debug")


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_trains_scores_and_samples(preset: str, cli: Cli, book: Path) -> None:
    family = preset.partition("/")[0]
    data = {"toy": (), "cityscapes": ("--data", "streets")}.get(family, ("--data", f"text:{book}"))
    trained = cli("train", preset, *data, *small_flags(preset), "--steps", 3, "--out", "run", "--json")
    assert trained.code == 0, trained.err
    is_flow = not preset.endswith("multinomial")
    is_exact = preset.endswith(("/arm", "/arm-xl", "/discrete-flow"))
    has_surjection = any(part in preset for part in ("argmax", "dequant", "toy/eight"))
    assert ("Surjection" in trained.err) == has_surjection
    scored = cli("evaluate", "run", "--split", "val", "--num-examples", 4, "--invalid-samples", 2, "--json")
    assert scored.code == 0, scored.err
    assert math.isfinite(scored.json["bits_per_dim"])
    assert scored.json["kind"] == ("exact" if is_exact else "elbo")
    if is_flow and not is_exact:
        words = ("evaluate", "run", "--bound", "iwbo", "--k", 5, "--num-examples", 4, "--invalid-samples", 0, "--json")
        tighter = cli(*words)
        assert tighter.code == 0, tighter.err
        assert tighter.json["kind"] == "iwbo-5"
        assert math.isfinite(tighter.json["bits_per_dim"])
    sampled = cli("sample", "run", "--num", 2, "--json")
    assert sampled.code == 0, sampled.err
    assert len(sampled.json["samples"]) == 2
    assert cli("sample", "run", "--num", 2, "--out", "x.npy").code == 0
    model, x = unordinal.load("run").model, np.load("x.npy")
    assert x.shape == (2, *model.event_shape)
    if model.has_invalid_codes:
        assert sampled.json["invalid_codes"] == (x >= model.num_classes).sum()
    else:
        assert sampled.json["invalid_codes"] == 0
        assert (x < model.num_classes).all()


def test_version(cli: Cli) -> None:
    for flag in ("-V", "--version"):
        assert cli(flag).out == f"unordinal {unordinal.__version__}\n"


@pytest.mark.parametrize(
    ("error", "code", "complaint"),
    [
        (ValueError("`batch_size` must be\n  at least 1"), 2, "--batch-size must be at least 1"),
        (OSError("no space"), 2, "no space"),
        (KeyError("x"), 1, "KeyError: 'x' (--debug shows where)"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_errors_are_one_line_and_a_code(
    error: BaseException, code: int, complaint: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Words) -> int:
        raise error

    monkeypatch.setattr("unordinal.cli.data.main", fail)
    result = cli("data")
    assert result.code == code
    assert result.err == f"unordinal: {complaint}\n"
    if isinstance(error, Exception):
        with pytest.raises(type(error)):
            cli("data", "--debug")


def test_a_reader_that_goes_away_is_no_error() -> None:
    words = [sys.executable, "-u", "-m", "unordinal", "data"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 128 + signal.SIGPIPE


def test_references_to_runs_are_texts_not_paths() -> None:
    """A path would turn hf:owner/name into another name on Windows."""
    for command in COMMANDS:
        module = importlib.import_module(f"unordinal.cli.{command}")
        for kind in (value for name, value in vars(module).items() if name.endswith("Args")):
            found = [s for s in settings_of(kind).values() if any("RUN" in getattr(m, "metavar", "") for m in s.marks)]
            assert all(Path not in setting.types for setting in found)


def test_messages_name_no_option_that_the_command_lacks(cli: Cli, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(0, 3, (60, 4, 4))
    small: Any = {"net.width": 4, "net.num_heads": 1}
    fit("multinomial", x, steps=1, out=tmp_path / "maps", progress=False, **small)
    refused(cli("bits", "--text", "abc", "--run", tmp_path / "maps"), "bits is for text")
    assert "--bits" not in cli("bits", "--text", "abc", "--run", tmp_path / "maps").err
