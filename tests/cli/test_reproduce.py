"""`unordinal reproduce`."""

import json
from pathlib import Path

from conftest import Cli, refused

from unordinal.experiments import TABLES


def test_the_tables_are_listed(cli: Cli) -> None:
    shown = cli("reproduce", "list")
    assert shown.code == 0
    assert all(name in shown.out for name in TABLES)
    listed = cli("reproduce", "--json").json
    assert {name: table["rows"] for name, table in listed.items()} == {
        name: len(table.rows) for name, table in TABLES.items()
    }


def test_a_report_comes_from_one_command_and_again_from_its_results(cli: Cli, tmp_path: Path) -> None:
    words = ("reproduce", "eight-gaussians", "--minutes", 0.02, "--out", "out", "--json")
    done = cli(*words)
    assert done.code == 0, done.err
    assert done.json["states"]["done"] == 2
    text = (tmp_path / "out" / "report.md").read_text()
    assert "Argmax flow, one layer" in text
    assert "6.32" in text
    again = cli(*words)
    assert again.json["states"] == {"done": 0, "kept": 2, "stale": 0, "failed": 0}
    assert (tmp_path / "out" / "report.md").read_text() == text
    other = cli(*words[:2], "--minutes", 0.03, *words[4:])
    assert other.json["states"]["stale"] == 2
    assert "--again makes them again" in other.err
    moved = tmp_path / "moved" / "results.json"
    moved.parent.mkdir()
    moved.write_bytes((tmp_path / "out" / "results.json").read_bytes())
    assert cli("reproduce", "--render", moved).code == 0
    assert (moved.parent / "report.html").read_text().count("<img") == 2


def test_the_cost_of_the_paper_s_size_is_told_without_training(cli: Cli, tmp_path: Path) -> None:
    told = cli("reproduce", "cityscapes", "--size", "paper", "--data", "cityscapes=streets", "--dry-run", "--json")
    assert told.code == 0, told.err
    jobs = {job["model"]: job for job in told.json["jobs"]}
    assert len(jobs) == len(TABLES["cityscapes"].rows)
    assert all(job["parameters"] > 1e6 and job["memory"] > 1e8 for job in jobs.values())
    assert not any(tmp_path.iterdir())


def test_wrong_words_are_refused(cli: Cli, tmp_path: Path) -> None:
    refused(cli("reproduce", "citiscapes"), "unknown table 'citiscapes'", "cityscapes")
    refused(cli("reproduce", "all", "--data", "text8"), "takes NAME=PATH", "text8=text8.zip")
    refused(cli("reproduce", "all", "--data", "text8=gone.zip"), "gone.zip")
    refused(cli("reproduce", "all", "--minutes", 0), "--minutes must be a number above 0")
    refused(cli("reproduce", "--render", "gone.json"), "there is no file gone.json")
    (tmp_path / "file").write_text("text")
    refused(cli("reproduce", "cartesian", "--out", "file"), "file is a file")
    (tmp_path / "other.json").write_text(json.dumps({"a": 1}))
    refused(cli("reproduce", "--render", "other.json"), "expected the results.json")
    (tmp_path / "damaged.json").write_text('{"unordinal": "reproduction", "asked": {}}')
    refused(cli("reproduce", "--render", "damaged.json"), "damaged.json is damaged")
