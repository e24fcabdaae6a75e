"""Shared fixtures: a data folder of the tests' own, a small text, and the command line in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from unordinal.cli import run as run_cli
from unordinal.experiments import EXPERIMENTS
from unordinal.recipes import RECIPES
from unordinal.recipes.tree import TreeSettings

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"
RUN = ["--size", "tiny", "--batch-size", "4", "--validate-examples", "8"]
SMALL = [*RUN, "--length", "32", "--model.num-steps", "20", "--model.net.width", "16"]
SMALL += ["--model.net.num-blocks", "1", "--model.net.global-heads", "1"]
SMALL_AR = ["--model.density.net.width", "8", "--model.density.num-mixtures", "2", "--model.density.channel-width", "4"]
SMALL_COUPLING = ["--model.density.net.width", "8", "--model.density.num-mixtures", "2"]
SMALL_COUPLING += ["--model.density.num-flows", "1"]
SMALL_MAPS = ["--size", "tiny", "--height", "8", "--width", "16", "--batch-size", "2", "--validate-examples", "2"]
SMALL_MAPS += ["--accumulate", "1"]
SMALL_LEVELS = ["--model.density.net.width", "8", "--model.density.num-flows", "1", "--model.inverse.num-flows", "1"]
SMALL_TRANSFORMER = ["--model.net.width", "16", "--model.net.num-blocks", "1", "--model.net.num-heads", "2"]
SMALL_LATENT = ["--model.net.width", "16", "--model.latent-channels", "2", "--model.num-flows", "1"]
SMALL_MODELS = {  # by the name of the recipe
    "multinomial": SMALL[len(RUN) + 2 :],
    "arm": SMALL_TRANSFORMER,
    "arm-xl": SMALL_TRANSFORMER,
    "argmax-ar": SMALL_AR,
    "uniform-dequant-ar": SMALL_AR,
    "variational-dequant-ar": SMALL_AR,
    "argmax-coupling": SMALL_COUPLING,
    "uniform-dequant-coupling": SMALL_COUPLING,
    "variational-dequant-coupling": SMALL_COUPLING,
    "discrete-flow": SMALL_TRANSFORMER,
    "latent-af-af": SMALL_LATENT,
    "latent-iaf-scf": SMALL_LATENT,
    "categorical-nf": [*SMALL_AR, "--model.latent-channels", "2"],
}


LEARNED = [name for name, recipe in RECIPES.items() if recipe.settings is not TreeSettings]  # trees are counted


def small_flags(preset: str, data: str = "") -> list[str]:
    """Flags that make a model a few weights large: that of an experiment, or one by name for its data."""
    if data.endswith(".csv"):
        return [*RUN, *SMALL_MODELS.get(preset, [])] if preset in LEARNED else []
    if preset in ("uniform", "absorbing"):  # came after the paper
        heads = "--model.net.global-heads" if preset == "uniform" else "--model.net.num-heads"
        return [*RUN, "--length", "32", "--model.net.width", "16", "--model.net.num-blocks", "1", heads, "2"]
    if preset == "block":
        return [
            *RUN,
            "--length",
            "32",
            "--model.net.width",
            "16",
            "--model.net.num-blocks",
            "1",
            "--model.net.num-heads",
            "2",
        ]
    if preset in RECIPES:
        preset = f"{'cityscapes' if data == 'streets' else 'text8'}/{preset}"
    recipe, task = EXPERIMENTS[preset]
    if preset == "cityscapes/multinomial":
        return [*SMALL_MAPS, "--model.net.width", "8", "--model.num-steps", "20"]
    if task == "cityscapes":
        return [*SMALL_MAPS, *SMALL_LEVELS]
    if preset == "toy/discrete-flow":
        return [*RUN, "--model.net.width", "8"]
    if task == "toy":
        return [*RUN, *SMALL_MODELS[recipe]]
    length = "4" if task == "enwik8" else "16"  # 256 one-hot channels take their time
    return [*RUN, "--length", "32" if recipe == "multinomial" else length, *SMALL_MODELS[recipe]]


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


def refused(result: Result, *parts: str) -> None:
    """Bad input: exit code 2, no traceback, and one line that says all of `parts`."""
    assert result.code == 2, (result.out, result.err)
    for part in parts:
        assert part in result.complaint, (part, result.complaint)


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
