"""Shared fixtures: a data folder of the tests' own, a small text, and the command line in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from unordinal.cli import run as run_cli

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
SMALL = ["--size", "tiny", "--length", "32", "--batch-size", "4", "--validate-examples", "8"]
SMALL += ["--model.num-steps", "20", "--model.width", "16", "--model.num-blocks", "1", "--model.global-heads", "1"]
SMALL_FLOW = ["--size", "tiny", "--batch-size", "4", "--validate-examples", "8", "--model.width", "8"]
SMALL_FLOW += ["--model.num-mixtures", "2", "--model.channel-width", "4", "--model.num-flows", "1"]


SMALL_MAPS = ["--size", "tiny", "--height", "8", "--width", "16", "--batch-size", "2", "--validate-examples", "2"]
SMALL_MAPS += ["--accumulate", "1"]


SMALL_RUN = ["--size", "tiny", "--batch-size", "4", "--validate-examples", "8"]
TEXT = ["--length", "16", "--model.width", "16"]
SMALL_OTHERS = {
    "/arm": [*TEXT, "--model.num-blocks", "1", "--model.num-heads", "2"],
    "/arm-xl": [*TEXT, "--model.num-blocks", "1", "--model.num-heads", "2"],
    "toy/discrete-flow": ["--model.width", "8"],
    "/discrete-flow": [*TEXT, "--model.num-layers", "1", "--model.num-heads", "2"],
    "/latent-af-af": [*TEXT, "--model.latent-channels", "2", "--model.num-flows", "1"],
    "/latent-iaf-scf": [*TEXT, "--model.latent-channels", "2", "--model.num-flows", "1"],
    "/categorical-nf": [*TEXT, "--model.latent-channels", "2", "--model.num-mixtures", "2"],
}


def small_flags(preset: str) -> list[str]:
    """Flags that make a preset's model a few weights large."""
    if preset == "cityscapes/multinomial":
        return [*SMALL_MAPS, "--model.width", "8", "--model.num-steps", "20"]
    if preset.startswith("cityscapes/"):
        return [*SMALL_MAPS, "--model.width", "8", "--model.num-flows", "1", "--model.noise-flows", "1"]
    if preset.endswith("multinomial"):
        return SMALL
    for ending, flags in SMALL_OTHERS.items():
        if preset.endswith(ending):
            return [*SMALL_RUN, *flags]
    if preset.startswith("toy/"):
        return SMALL_FLOW
    length = "4" if preset.startswith("enwik8") else "16"  # 256 one-hot channels take their time
    return [*SMALL_FLOW, "--length", length]


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out.strip().splitlines()[-1])

    @property
    def complaint(self) -> str:
        """The one line of an error."""
        lines = [line for line in self.err.splitlines() if line.startswith("unordinal: ")]
        assert len(lines) == 1, self.err
        assert "Traceback" not in self.err
        return lines[0]


Cli = Callable[..., Result]


@pytest.fixture(scope="session", autouse=True)
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Nothing of the user's cache is read or written; everything prepared is shared by the whole test run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNORDINAL_DATA", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text of 27 symbols, long enough to train on."""
    path = tmp_path_factory.mktemp("book") / "book.txt"
    path.write_text("the quick brown fox jumps over the lazy dog and runs away " * 100)
    return path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `unordinal ...` in this process, in a folder of the test's own."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> Result:
        capsys.readouterr()
        try:
            code = run_cli([str(word) for word in words])
        except SystemExit as stop:  # the argument parser's own way out
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture(scope="session")
def trained(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished small run."""
    out = tmp_path_factory.mktemp("trained") / "run"
    assert (
        run_cli(["train", "text8/multinomial", "--data", f"text:{book}", *SMALL, "--steps", "20", "--out", str(out)])
        == 0
    )
    return out


@pytest.fixture(scope="session")
def trained_flow(book: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small argmax flow after a few steps."""
    out = tmp_path_factory.mktemp("trained") / "flow"
    words = ["train", "text8/argmax-ar", "--data", f"text:{book}", *small_flags("text8/argmax-ar")]
    assert run_cli([*words, "--steps", "5", "--out", str(out)]) == 0
    return out
