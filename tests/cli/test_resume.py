"""`unordinal train --out RUN --resume`: a run goes on under its own settings."""

import json
import shutil
from pathlib import Path

from conftest import SMALL, Cli, refused


def test_a_run_goes_on_without_its_settings_being_said_again(cli: Cli, book: Path) -> None:
    words = ("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--seed", 3, "--optim.no-decay-to-zero")
    assert cli(*words, "--steps", 4, "--out", "half").code == 0
    longer = cli("train", "--out", "half", "--resume", "--steps", 8, "--json")
    assert longer.code == 0, longer.err
    assert longer.json["steps"] == 8
    assert cli(*words, "--steps", 8, "--out", "whole").code == 0
    half, whole = (cli("evaluate", run, "--json").json["bits_per_dim"] for run in ("half", "whole"))
    assert half == whole  # as if it had never stopped
    finished = cli("train", "--resume", "--out=half")
    assert "is finished; a budget counts from its start, of which 8 steps are spent" in finished.err
    again = cli(*words, "--steps", 8, "--out", "half", "--resume")  # the whole command works as before
    assert "is finished; a budget counts from its start, of which 8 steps are spent" in again.err


def test_what_cannot_go_on_is_refused(cli: Cli, trained: Path, tmp_path: Path) -> None:
    refused(cli("train", "--out", "nowhere", "--resume"), "no run at nowhere")
    refused(cli("train", "--out", trained, "--resume", "--steps", 0), "--steps must be at least 1, got 0")
    refused(cli("train", "--out", trained, "--resume", "--seed", 5), "--seed")
    own = tmp_path / "own"
    shutil.copytree(trained, own)
    config = json.loads((own / "config.json").read_text())
    config["run"]["recipe"] = "custom"
    config["run"]["model"] = {"kind": "OwnModel", "made_by": "Mine"}
    (own / "config.json").write_text(json.dumps(config))
    refused(cli("train", "--out", own, "--resume"), "was made in Python; go on with it there")
