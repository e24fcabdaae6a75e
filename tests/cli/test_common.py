"""What several commands share: settings named as flags, devices, seeds, output files and units."""

from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import Cli, refused

from unordinal.cli.common import FLAGS, MachineArgs, as_flags, check_output, text_of
from unordinal.cli.common import peak_memory_megabytes as peak_memory
from unordinal.config import TrainConfig
from unordinal.tasks.asking import Sample


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("`lr` must be above 0, got -1", "--lr must be above 0, got -1"),
        ("`optim.matrix_lr` and `batch_size`", "--optim.matrix-lr and --batch-size"),
        ("use another `split` or a smaller `map_height`", "use another --data-split or a smaller --height"),
        ("`num_samples` must be at least 1", "--num must be at least 1"),
        ("`unordinal data` lists them, `--resume` continues", "`unordinal data` lists them, `--resume` continues"),
        ("num_blocks -2", "num_blocks -2"),
    ],
)
def test_settings_of_the_library_become_flags(message: str, shown: str) -> None:
    assert as_flags(message) == shown


def test_settings_that_are_no_options_of_the_command_keep_their_names() -> None:
    options = frozenset({"--lr", "--data-split", "--split", "--num", "--optim.ema"})
    for message, shown in (
        ("`lr` must be above 0", "--lr must be above 0"),
        ("`optim.ema` and `optim.clip`", "--optim.ema and optim.clip"),
        ("another `split`", "another --split"),
        ("`num_samples`, `map_height`", "--num, map_height"),
        ("`bits` is for text", "bits is for text"),
    ):
        assert as_flags(message, options) == shown
    assert as_flags("another `split`", frozenset({"--data-split"})) == "another --data-split"


def test_flags_of_other_names_exist(cli: Cli) -> None:
    words = [("train", "cityscapes/vae", "--help-all"), ("train", "text8/arm", "--help-all"), ("sample", "--help")]
    said = "".join(cli(*one).out for one in words)
    assert all(f"{flag} " in said for flag in FLAGS.values())


def test_the_device_and_the_threads_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    try:
        assert MachineArgs(device="cpu", threads=1).chosen_device() == torch.device("cpu")
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert MachineArgs().chosen_device() == torch.device("cpu")
    with pytest.raises(ValueError, match="no device mps here; available: cpu"):
        MachineArgs(device="mps").chosen_device()
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert MachineArgs().chosen_device() == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert MachineArgs().chosen_device() == torch.device("cuda")


def test_seeds_are_those_that_torch_takes() -> None:
    for kind in (TrainConfig, Sample):
        for seed in (0, 2**63 - 1):
            kind(seed=seed)
            torch.Generator().manual_seed(seed)
        for seed in (-1, 2**63):
            with pytest.raises(ValueError, match="`seed` must be a whole number between 0 and 9223372036854775807"):
                kind(seed=seed)


def test_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    check_output(None)
    check_output(tmp_path / "new.txt")
    assert not (tmp_path / "new.txt").exists()
    with pytest.raises(ValueError, match=r"to write x\.txt to"):
        check_output(tmp_path / "nowhere" / "x.txt")
    with pytest.raises(ValueError, match="is a folder; expected a file"):
        check_output(tmp_path)


def test_small_files_are_read_or_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("road #804080\n")
    (tmp_path / "b.txt").write_bytes(b"\xff")
    assert text_of(tmp_path / "a.txt") == "road #804080\n"
    for name in ("b.txt", "none.txt"):
        with pytest.raises(ValueError, match=f"cannot read .*{name}"):
            text_of(tmp_path / name)


def test_the_peak_of_memory_is_in_megabytes() -> None:
    held = np.ones(64 << 20, np.uint8)  # 64 MB, every page touched
    peak = peak_memory()
    assert peak is not None
    assert held.nbytes >> 20 <= peak < 1 << 20  # far below a terabyte: the unit is right


def test_the_size_of_blocks_is_chosen_again_for_scores_and_samples(cli: Cli, book: Path) -> None:
    small = ("--model.net.width", 8, "--model.net.num-blocks", 1, "--model.net.num-heads", 1, "--length", 16)
    words = ("train", "block", "--data", book, *small, "--steps", 2, "--model.also", 1, "--out", "blocks")
    assert cli(*words).code == 0
    exact = cli("evaluate", "blocks", "--block", 1, "--num-examples", 4, "--json")
    assert exact.code == 0, exact.err
    assert exact.json["kind"] == "exact"
    assert "Note: this model" not in exact.err
    assert cli("evaluate", "blocks", "--num-examples", 4, "--json").json["kind"] == "elbo"
    whole = cli("sample", "blocks", "--block", "all", "--num", 1)
    assert whole.code == 0, whole.err
    assert "trained with blocks of 4, 1; those of all may score worse" in whole.err
    bits = cli("bits", "--text", "it is a truth", "--run", "blocks", "--block", 1)
    assert bits.code == 0, bits.err
    refused(
        cli("evaluate", "blocks", "--block", 0),
        "--block must be between 1 and 16, the length of an example, or all; got 0",
    )
    refused(cli("evaluate", "blocks", "--block", 99), "--block must be between 1 and 16")
    assert cli("train", "arm", "--data", book, *small, "--steps", 1, "--out", "arm").code == 0
    refused(cli("sample", "arm", "--block", 2), "--block is for models of blocks")
