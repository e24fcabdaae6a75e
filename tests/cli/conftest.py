"""Runs that several files of this folder need."""

from pathlib import Path

import pytest
from conftest import small_flags

from unordinal.cli import run as run_cli


@pytest.fixture(scope="session")
def trained_maps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A diffusion, a flow and a VAE of maps after two steps."""
    folder = tmp_path_factory.mktemp("maps")
    for kind in ("multinomial", "argmax-softplus", "vae"):
        preset = f"cityscapes/{kind}"
        words = ["train", preset, "--data", "streets", *small_flags(preset), "--steps", "2"]
        assert run_cli([*words, "--out", str(folder / kind)]) == 0
    return {kind: folder / kind for kind in ("multinomial", "argmax-softplus", "vae")}


@pytest.fixture(scope="session")
def arms(book: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An autoregressive Transformer and a Transformer-XL after a few steps."""
    folder = tmp_path_factory.mktemp("arms")
    for kind in ("arm", "arm-xl"):
        words = ["train", f"text8/{kind}", "--data", f"text:{book}", *small_flags(f"text8/{kind}"), "--steps", "5"]
        assert run_cli([*words, "--out", str(folder / kind)]) == 0
    return {kind: folder / kind for kind in ("arm", "arm-xl")}


@pytest.fixture(scope="session")
def diffusions(book: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Diffusions with uniform and with absorbing noise after a few steps: of text, and of maps."""
    folder = tmp_path_factory.mktemp("diffusions")
    common = ["--batch-size", "4", "--validate-examples", "4", "--steps", "5"]
    text = ["--data", str(book), "--length", "32", "--model.net.width", "16", "--model.net.num-blocks", "1"]
    maps = ["--data", "streets", "--height", "8", "--width", "16", "--model.net.width", "8"]
    made = {
        "uniform": ["uniform", *text, "--model.net.global-heads", "2"],
        "absorbing": ["absorbing", *text, "--model.net.num-heads", "2"],
        "maps": ["absorbing", *maps],
    }
    for name, words in made.items():
        assert run_cli(["train", *words, *common, "--out", str(folder / name)]) == 0
    return {name: folder / name for name in made}
