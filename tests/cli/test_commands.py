"""Every command, end to end, on a small run."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import SMALL, Cli, small_flags

import unordinal
from unordinal.cli import COMMANDS
from unordinal.cli.train import free_name


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
        assert "Example" in result.out


def test_a_run_folder_holds_what_it_should(trained: Path) -> None:
    names = {path.relative_to(trained).as_posix() for path in trained.rglob("*")}
    assert {"config.json", "model.safetensors", "metrics.jsonl", "checkpoints", "plots/loss.png"} <= names
    config = json.loads((trained / "config.json").read_text())
    assert config["run"]["model"]["width"] == 16
    assert config["run"]["train"]["steps"] == 20
    assert config["run"]["train"]["minutes"] is None
    assert config["data"]["vocabulary"]["kind"] == "text8"


def test_train_ends_with_json(cli: Cli, book: Path) -> None:
    result = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 5, "--json")
    assert result.code == 0, result.err
    values = result.json
    assert values["run"] == "runs/text8-multinomial-tiny"
    assert values["steps"] == 5
    assert values["parameters"] > 1000
    assert values["symbols_per_second"] > 0
    assert values["seconds"] > 0
    again = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 5, "--json")
    assert again.json["run"] == "runs/text8-multinomial-tiny-2"
    assert again.json["val_bits_per_dim"] == values["val_bits_per_dim"]  # the seed reproduces
    resumed = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 5, "--json", "--resume")
    assert resumed.json["run"] == "runs/text8-multinomial-tiny-2"
    longer = cli("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", 9, "--json", "--resume")
    assert longer.json["steps"] == 9


@pytest.mark.parametrize("preset", sorted(unordinal.PRESETS))
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
    assert sampled.json["invalid_codes"] >= 0


def test_evaluate_both_ways(cli: Cli, trained: Path) -> None:
    every = cli("evaluate", trained, "--times", "all", "--json", "--split", "val")
    some = cli("evaluate", trained, "--repeats", 20, "--json", "--split", "val", "--seed", 1)
    for result in (every, some):
        values = result.json
        assert result.code == 0
        assert values["kind"] == "elbo"
        assert values["split"] == "val"
        assert values["num_examples"] == 9
        assert values["unit"] == "bits per character"
        assert {"standard_error", "seconds", "method"} <= values.keys()
        assert "± " in result.out
    tolerance = 5 * (every.json["standard_error"] + some.json["standard_error"])
    assert abs(every.json["bits_per_dim"] - some.json["bits_per_dim"]) < tolerance
    assert "all 20 times" in every.out
    assert "stratified times, 20 of 20" in some.out


def test_evaluate_writes_every_example(cli: Cli, trained: Path) -> None:
    result = cli("evaluate", trained, "--num-examples", 4, "--per-example", "bits.csv", "--json")
    rows = list(csv.DictReader(Path("bits.csv").read_text().splitlines()))
    assert [row["example"] for row in rows] == ["0", "1", "2", "3"]
    mean = sum(float(row["bits_per_dim"]) for row in rows) / 4
    assert mean == pytest.approx(result.json["bits_per_dim"], abs=1e-5)


def test_evaluate_other_data_with_the_runs_vocabulary(cli: Cli, trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("pack my box with five dozen jugs " * 60)
    result = cli("evaluate", trained, "--data", f"text:{other}", "--json")
    assert result.code == 0, result.err
    assert result.json["data"] == f"text:{other}"


def test_evaluate_a_whole_file(cli: Cli, trained: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("pack my box with five dozen jugs " * 60)
    result = cli("evaluate", trained, "--data", f"text:{other}", "--data-split", "0,0,1", "--json")
    assert result.code == 0, result.err
    assert result.json["num_examples"] == 33 * 60 // 32


def test_files_are_written_through_links_and_to_pipes(cli: Cli, trained: Path) -> None:
    Path("real.txt").write_text("old")
    Path("link.txt").symlink_to("real.txt")
    assert cli("sample", trained, "--num", 1, "--steps", 2, "--out", "link.txt").code == 0
    assert Path("link.txt").is_symlink()
    assert len(Path("real.txt").read_text()) == 33
    assert cli("sample", trained, "--num", 1, "--steps", 2, "--out", "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


def test_resume_finds_its_run_among_others(cli: Cli, book: Path) -> None:
    words = ("train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--json")
    first = cli(*words, "--steps", 2).json["run"]
    second = cli(*words, "--steps", 2, "--seed", 1).json["run"]
    assert first != second
    (Path(second) / "config.json").write_text("broken")
    longer = cli(*words, "--steps", 4, "--resume", "--lr", "0.001")
    assert longer.json["run"] == first
    assert longer.json["steps"] == 4
    saved = json.loads((Path(first) / "config.json").read_text())["run"]["train"]
    assert (saved["steps"], saved["lr"]) == (4, 0.001)


def test_sample_is_reproducible_and_counts_its_calls(cli: Cli, trained: Path) -> None:
    first, second = (cli("sample", trained, "--num", 3, "--steps", 7, "--seed", 5, "--json") for _ in range(2))
    assert first.json["samples"] == second.json["samples"]
    assert first.json["network_calls"] == 7
    assert all(len(text) == 32 for text in first.json["samples"])
    longer = cli("sample", trained, "--num", 1, "--length", 50, "--json")
    assert len(longer.json["samples"][0]) == 50
    assert longer.json["network_calls"] == 20
    plain = cli("sample", trained, "--num", 3, "--steps", 7, "--seed", 5)
    assert [text for text in plain.out.split("\n\n") if text] == [*first.json["samples"]]


def test_sample_writes_files(cli: Cli, trained: Path) -> None:
    common = ("sample", trained, "--num", 3, "--steps", 5)
    for name in ("x.txt", "x.npy", "x.json"):
        assert cli(*common, "--out", name).code == 0
    texts = Path("x.txt").read_text().splitlines()
    classes = np.load("x.npy")
    assert [unordinal.Vocabulary.text8().decode(row) for row in classes] == texts
    assert json.loads(Path("x.json").read_text()) == classes.tolist()
    for name in ("c.txt", "c.json", "c.png"):
        assert cli(*common, "--chain", name).code == 0
    lines = [line.split("\t") for line in Path("c.txt").read_text().splitlines()]
    assert [int(t) for t, _ in lines] == [20, 16, 12, 8, 4, 0]
    assert lines[-1][1] == texts[0]
    assert json.loads(Path("c.json").read_text())[-1]["shown"] == texts[0]
    assert Path("c.png").read_bytes().startswith(b"\x89PNG")


def test_load_gives_model_and_vocabulary(trained: Path) -> None:
    model, vocabulary = unordinal.load(trained)
    assert len(vocabulary.decode(model.sample(1)[0])) == 32
    run = unordinal.load(trained)
    assert run.vocabulary == vocabulary
    assert not run.model.training
    score = unordinal.score(run, num_examples=3)
    assert score.kind == "elbo"


def test_flags_may_come_before_the_preset_and_epochs_are_a_budget(cli: Cli, book: Path) -> None:
    words = [w for w in SMALL if w not in ("--size", "tiny")]
    result = cli(
        "train", "--size=tiny", "--data", f"text:{book}", *words, "text8/multinomial", "--epochs", "0.1", "--json"
    )
    assert result.code == 0, result.err
    assert result.json["steps"] == math.ceil(0.1 * 5220 / (4 * 32))


def test_presets_and_data_are_listed(cli: Cli, book: Path) -> None:
    listed = cli("presets", "--json").json["presets"]
    assert listed["text8/multinomial"]["parameters"]["tiny"] < listed["text8/multinomial"]["parameters"]["paper"]
    assert "text8/multinomial" in cli("presets").out
    assert "text:PATH" in cli("data").out
    described = cli("data", f"text:{book}", "--alphabet", "chars", "--length", 40, "--json").json
    assert described["num_classes"] == 27
    assert described["examples"] == {"train": 130, "val": 7, "test": 7}
    shown = cli("data", f"text:{book}", "--alphabet", "chars", "--length", 40)
    assert "the quick brown fox" in shown.out


def test_chars_and_arrays_train_too(cli: Cli, tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("Hello, World! 123\n" * 200)
    result = cli(
        "train",
        "text8/multinomial",
        "--data",
        f"text:{text}",
        "--alphabet",
        "chars",
        *SMALL,
        "--steps",
        2,
        "--out",
        "a",
    )
    assert result.code == 0, result.err
    assert unordinal.load("a").spec.num_classes == len(set("Hello, World! 123\n"))
    np.savez(tmp_path / "x.npz", data=np.random.default_rng(0).integers(0, 4, (300, 12)))
    result = cli("train", "text8/multinomial", "--data", f"array:{tmp_path}/x.npz", *SMALL, "--steps", 2, "--out", "b")
    assert result.code == 0, result.err
    sampled = cli("sample", "b", "--json", "--num", 1).json["samples"]
    assert len(sampled[0]) == 12
    assert max(sampled[0]) < 4


def test_demo_end_to_end(cli: Cli) -> None:
    result = cli("demo", "--minutes", "0.05", "--json")
    assert result.code == 0, result.err
    values = result.json
    assert set(values["baselines"]) >= {"order-0 counts", "order-3 counts", "xz -9e"}
    assert Path("runs/demo/plots/loss.png").exists()
    page = Path("runs/demo/report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page.replace("<!doctype html>", "")
    assert free_name(Path("runs/demo")) == Path("runs/demo-2")
