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
