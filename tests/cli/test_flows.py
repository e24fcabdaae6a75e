"""The command line on flows: surjections and bases, importance-weighted bounds, invalid codes, exact probabilities."""

from pathlib import Path

import numpy as np
import pytest
from cli.test_bad_input import refused
from conftest import SMALL_FLOW, Cli, small_flags

import unordinal
from unordinal.data.spec import REPLACEMENT
from unordinal.data.toy import eight_gaussians_pmf

AR = ("train", "text8/argmax-ar", *small_flags("text8/argmax-ar"), "--steps", "2", "--json")


@pytest.mark.parametrize(
    ("flags", "base", "channels"),
    [
        ((), 2, 5),
        (("--base", 3), 3, 9),
        (("--base", 2), 2, 10),
        (("--surjection", "softplus", "--base", 27), 27, 27),
        (("--surjection", "softplus"), 27, 27),
        (("--surjection", "softplus", "--base", 6), 6, 12),
        (("--surjection", "gumbel", "--base", 3), 3, 9),
        (("--surjection", "gumbel-threshold", "--base", 2), 2, 10),
        (("--surjection", "round-uniform", "--base", 3), 3, 9),
        (("--surjection", "round-variational", "--net", "transformer"), 27, 27),
        (("--surjection", "ordinal"), 27, 1),
    ],
)
def test_surjections_bases_and_nets_swap(
    flags: tuple[object, ...], base: int, channels: int, cli: Cli, book: Path
) -> None:
    result = cli(*AR, "--data", f"text:{book}", *flags, "--model.num-heads", 2, "--out", "run")
    assert result.code == 0, result.err
    assert result.json["base"] == base
    assert result.json["density_parameters"] + result.json["inverse_parameters"] == result.json["parameters"]
    assert f"base {base}: {channels} reals per symbol" in result.err
    assert cli("sample", "run", "--num", 1, "--json").code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--surjection", "softplus", "--base", 28), "between 2 and the number of classes, 27; got 28"),
        (("--surjection", "softplus", "--base", 1), "between 2 and the number of classes, 27; got 1"),
        (("--base", 28), "between 2 and the number of classes, 27; got 28"),
        (("--net", "transformer", "--model.num-heads", 0), "heads 0"),
        (("--net", "transformer", "--model.width", -8), "width -8"),
        (("--net", "transformer", "--model.num-heads", 2, "--model.dropout", 1), "dropout must be at least 0"),
        (("--surjection", "ordinal", "--model.flow", "coupling"), "at least 2 channels, got 1"),
        (("--surjection", "argmax"), "argmax"),
        (("--model.num-mixtures", 0), "at least 1 component, got 0"),
        (("--model.dropout", 1), "dropout 1"),
        (("--model.context-width", 0), "context_width must be at least 1, got 0"),
        (("--model.noise-flows", -1), "noise_flows must be at least 0, got -1"),
        (("--model.num-flows", 0, "--model.flow", "coupling"), "num_flows must be at least 1, got 0"),
    ],
)
def test_flows_that_cannot_be(flags: tuple[object, ...], message: str, cli: Cli, book: Path) -> None:
    refused(cli(*AR, "--data", f"text:{book}", "--out", "run", *flags), message)
    assert not Path("run").exists()


def test_one_class_is_refused(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((100, 8), np.uint8))
    refused(cli(*AR, "--data", f"array:{tmp_path}/x.npy", "--out", "run"), "only class 0")


def test_two_classes_do_not_couple(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).integers(0, 2, (100, 8)).astype(np.uint8))
    words = ("train", "text8/argmax-coupling", *SMALL_FLOW, "--steps", 2, "--data", f"array:{tmp_path}/x.npy")
    refused(cli(*words, "--out", "run"), "at least 2 channels, got 1")


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
    refused(cli(*common, "--bound", "iwbo", "--k", 0), "k of at least 1 draw, got 0")
    refused(cli(*common, "--invalid-samples", 1), "--invalid-samples must be 0 or at least 2, got 1")
    refused(cli(*common, "--repeats", 0), "--repeats must be at least 1, got 0")
    refused(cli("evaluate", trained_flow, "--split", "exact"), "not known; use --split train, val or test")
    refused(cli(*common, "--bound", "iwbo", "--repeats", 3), "--repeats 3 is for the ELBO")
    refused(cli(*common[:2], "--split", "exact", "--num-examples", 3), "leave out --num-examples 3")


def test_diffusion_has_importance_weights_too(cli: Cli, trained: Path) -> None:
    result = cli("evaluate", trained, "--bound", "iwbo", "--k", 3, "--num-examples", 2, "--json")
    assert result.code == 0, result.err
    assert result.json["kind"] == "iwbo-3"


def test_invalid_codes_are_shown_counted_and_resampled(cli: Cli, trained_flow: Path) -> None:
    kept = cli("sample", trained_flow, "--num", 40, "--json").json
    assert kept["invalid_codes"] == sum(text.count(REPLACEMENT) for text in kept["samples"])
    assert kept["invalid_codes"] > 0  # five of 32 codes, hardly trained
    assert kept["steps"] is None
    again = cli("sample", trained_flow, "--num", 40, "--json").json
    assert again["samples"] == kept["samples"]
    clean = cli("sample", trained_flow, "--num", 3, "--length", 2, "--invalid", "resample", "--json").json
    assert clean["invalid_codes"] == 0
    hopeless = cli("sample", trained_flow, "--num", 3, "--length", 60, "--invalid", "resample")
    assert hopeless.code == 1
    assert "after 20 tries" in hopeless.complaint
    for flag in (("--steps", 3), ("--chain", "c.png")):
        refused(cli("sample", trained_flow, *flag), "is for diffusion", "text8/argmax-ar, which has no steps")


def test_an_invalid_byte_is_kept_in_files(cli: Cli, book: Path) -> None:
    flags = small_flags("enwik8/uniform-dequant-coupling")
    words = ("train", "enwik8/uniform-dequant-coupling", "--data", f"text:{book}", *flags, "--steps", 1)
    assert cli(*words, "--out", "run").code == 0
    sampled = cli("sample", "run", "--num", 2, "--out", "x.npy", "--json").json
    x = np.load("x.npy")
    assert int((x == 256).sum()) == sampled["invalid_codes"] > 0
    assert all(REPLACEMENT in text for text in sampled["samples"])


def test_eight_gaussians_are_scored_on_every_cell(cli: Cli) -> None:
    words = ("train", "toy/eight-gaussians", *SMALL_FLOW, "--steps", 3, "--out", "run")
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
