"""`unordinal evaluate`: bounds and exact likelihoods, other data, and runs that cannot be scored."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import Cli, refused, small_flags

import unordinal
from unordinal.data.toy import eight_gaussians_pmf


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


def test_runs_that_are_none(cli: Cli, trained: Path, tmp_path: Path) -> None:
    refused(cli("evaluate", "nowhere"), "no run at nowhere")
    (tmp_path / "empty").mkdir()
    refused(cli("sample", tmp_path / "empty"), "holds no config.json")
    half = tmp_path / "half"
    half.mkdir()
    shutil.copy(trained / "config.json", half)
    refused(cli("evaluate", half), "has no model.safetensors", "with the same settings and resume")
    broken = tmp_path / "broken"
    shutil.copytree(trained, broken)
    weights = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    refused(cli("evaluate", broken), "truncated or damaged")
    (broken / "model.safetensors").write_bytes(weights)
    (broken / "config.json").write_text((broken / "config.json").read_text()[:100])
    refused(cli("sample", broken), "config.json is damaged")


def test_a_run_of_another_data_set(cli: Cli, trained: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 200, (90, 32)))
    refused(cli("evaluate", trained, "--data", f"array:{tmp_path}/x.npy"), "is a model of text, but")
    (tmp_path / "other.txt").write_text("UPPER CASE " * 200)
    refused(cli("evaluate", trained, "--data", f"text:{tmp_path}/other.txt"), "got 'U' at position 0")
    moved = tmp_path / "moved"
    shutil.copytree(trained, moved)
    config = json.loads((moved / "config.json").read_text())
    (tmp_path / "changed.txt").write_text("something else entirely " * 300)
    config["run"]["data"]["path"] = f"{tmp_path}/changed.txt"
    (moved / "config.json").write_text(json.dumps(config))
    refused(cli("evaluate", moved), "has changed since")


def test_bounds(cli: Cli, trained_flow: Path) -> None:
    common = ("evaluate", trained_flow, "--split", "val", "--num-examples", 8, "--json")
    one = cli(*common, "--bound", "iwbo", "--k", 1).json
    many = cli(*common, "--bound", "iwbo", "--k", 200, "--invalid-samples", 0).json
    assert one["kind"] == "iwbo-1"
    assert "invalid" not in many
    assert many["bits_per_dim"] < one["bits_per_dim"]
    invalid = one["invalid"]
    assert invalid["num_samples"] == 64
    assert 0 <= invalid["per_position"] <= invalid["per_sequence"] <= 1
    assert invalid["per_position_error"] > 0
    refused(cli(*common, "--bound", "iwbo", "--k", 0), "--k must be a whole number of at least 1, got 0")
    refused(cli(*common, "--invalid-samples", 1), "--invalid-samples must be 0 or at least 2, got 1")
    refused(cli(*common, "--repeats", 0), "--repeats must be a whole number of at least 1, got 0")
    refused(cli("evaluate", trained_flow, "--split", "exact"), "are not known; score train, val or test")
    refused(cli(*common, "--bound", "iwbo", "--repeats", 3), "--repeats 3 is for the ELBO")
    refused(cli(*common[:2], "--split", "exact", "--num-examples", 3), "leave out --num-examples 3")


def test_diffusion_has_importance_weights_too(cli: Cli, trained: Path) -> None:
    result = cli("evaluate", trained, "--bound", "iwbo", "--k", 3, "--num-examples", 2, "--json")
    assert result.code == 0, result.err
    assert result.json["kind"] == "iwbo-3"


def test_eight_gaussians_are_scored_on_every_cell(cli: Cli) -> None:
    words = ("train", "toy/eight-gaussians", *small_flags("toy/eight-gaussians"), "--steps", 3, "--out", "run")
    assert cli(*words).code == 0
    result = cli("evaluate", "run", "--split", "exact", "--repeats", 2, "--plot", "pmf.png", "--json")
    assert result.code == 0, result.err
    values = result.json
    assert values["num_examples"] == 91 * 91
    assert values["entropy_nats"] == pytest.approx(6.31996, abs=1e-5)
    assert values["nats_per_example"] > values["entropy_nats"]
    assert "exact entropy is 6.32" in result.out
    assert Path("pmf.png").read_bytes().startswith(b"\x89PNG")
    spread = cli("evaluate", "run", "--num-examples", 20, "--plot", "spread.png")
    assert spread.code == 0, spread.err
    assert Path("spread.png").read_bytes().startswith(b"\x89PNG")
    data = unordinal.load_data(unordinal.load("run").config.data)
    counts = np.zeros((91, 91))
    np.add.at(counts, tuple(data.test.symbols.T), 1)
    pmf = eight_gaussians_pmf()
    assert counts[pmf < 1e-12].sum() == 0


def test_the_unit_is_bits_per_pixel(cli: Cli, trained_maps: dict[str, Path]) -> None:
    result = cli("evaluate", trained_maps["argmax-softplus"], "--num-examples", 4, "--json")
    assert result.json["unit"] == "bits per pixel"
    assert "bits per pixel" in result.out


def test_other_maps_are_scored_where_they_fit(cli: Cli, trained_maps: dict[str, Path], tmp_path: Path) -> None:
    run = trained_maps["argmax-softplus"]
    rng = np.random.default_rng(0)
    np.save(tmp_path / "m.npy", rng.integers(0, 4, (6, 16, 12)).astype(np.uint8))  # fewer classes, another size
    words = ("--data", f"maps:{tmp_path / 'm.npy'}", "--data-split", "0,0,1", "--invalid-samples", 0, "--json")
    result = cli("evaluate", run, *words)
    assert result.code == 0, result.err
    assert result.json["num_examples"] == 6
    np.save(tmp_path / "m.npy", rng.integers(0, 9, (6, 16, 12)).astype(np.uint8))
    refused(cli("evaluate", run, *words), "class 8, but num_classes is 8")
    np.save(tmp_path / "m.npy", rng.integers(0, 4, (6, 10, 12)).astype(np.uint8))
    refused(cli("evaluate", run, *words), "multiples of 4, got (10, 12)")
    refused(cli("evaluate", run, "--data", "docs"), "takes maps, but docs gives sequences")
    same = cli("evaluate", run, "--data", "streets", "--num-examples", 2, "--json")
    assert same.json["num_examples"] == 2


def test_scoring_in_order_is_reported_apart(cli: Cli, arms: dict[str, Path]) -> None:
    apart = cli("evaluate", arms["arm-xl"], "--num-examples", 8, "--json")
    order = cli("evaluate", arms["arm-xl"], "--num-examples", 8, "--in-order", "--json")
    assert apart.json["kind"] == order.json["kind"] == "exact"
    assert "in order" in order.json["method"]
    assert "in order" not in apart.json["method"]
    refused(cli("evaluate", arms["arm"], "--in-order"), "--in-order is only for a text and a model with a memory")
    refused(cli("evaluate", arms["arm"], "--bound", "iwbo", "--k", 3), "this model's likelihood is exact")
    refused(cli("evaluate", arms["arm"], "--repeats", 3), "this model's likelihood is exact")
    refused(cli("evaluate", arms["arm-xl"], "--in-order", "--bound", "iwbo", "--k", 2), "--in-order is for exact")


def test_all_of_a_file_is_called_by_its_name(cli: Cli, trained: Path, book: Path) -> None:
    result = cli("evaluate", trained, "--data", book, "--num-examples", 3)
    assert result.code == 0, result.err
    assert f"3 examples of {book.name})" in result.out
    assert "most of them were seen in training" in result.err
    assert "examples of test)" in cli("evaluate", trained, "--num-examples", 3).out
