"""Names in the documentation exist: every `file.py: Name` and every option."""

import re
from pathlib import Path

import pytest

from unordinal.cli import COMMANDS, parsing, run
from unordinal.recipes import RECIPES

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unordinal"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAME = re.compile(r"`([a-z_/]+\.py): ([A-Za-z_, .]+)`")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9.-]*[a-z0-9]")
OTHER_OPTIONS = """
--help --help-all --debug --max-bytes --version --nproc-per-node --nnodes --rdzv-endpoint --rdzv-backend --rdzv-id
--max-restarts --master-addr --master-port --node-rank --nodes --ntasks-per-node --gpus-per-node --cpus-per-task --time
--signal --requeue --open-mode --standalone --only --rounds --files --seed
"""
OTHERS = set(OTHER_OPTIONS.split())  # options of other programs that the documentation names


@pytest.fixture(scope="module")
def known_options() -> set[str]:
    """The options of every command, and of `train` for every model and kind of data."""
    found: set[str] = set()
    calls = [[name, "--help-all"] for name in COMMANDS]
    calls += [["train", name, "--help-all"] for name in (*RECIPES, "cityscapes/multinomial")]
    calls += [["train", "multinomial", "--data", data, "--help-all"] for data in ("streets", "cityscapes")]
    calls += [
        ["train", "arm", "--data", f"{kind}:x", "--help-all"] for kind in ("array", "fasta", "text", "table", "lines")
    ]
    calls += [["train", "multinomial", "--data", "maps:x", "--help-all"]]
    calls += [["train", "argmax-ar", "--net", net, "--help-all"] for net in ("lstm", "transformer")]
    for call in calls:
        with pytest.raises(SystemExit):
            run(call)
        found |= parsing.known_flags
    return found


def test_names_of_code_in_the_documentation_exist() -> None:
    checked = 0
    for page in PAGES:
        for file, names in NAME.findall(page.read_text()):
            path = SOURCE / file if (SOURCE / file).exists() else ROOT / file
            assert path.exists(), f"{page.name} names {file}"
            for name in names.split(","):
                last = name.strip().rpartition(".")[2]
                is_there = re.search(rf"\b(def|class) {last}\b|^ *{last}\b.* = |^ *{last}: ", path.read_text(), re.M)
                assert is_there, f"{page.name} names {file}: {name.strip()}"
                checked += 1
    assert checked > 20


def test_options_in_the_documentation_exist(known_options: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    fields = re.compile(r"^    ([a-z_]+): .* = ", re.M)  # of a benchmark's dataclass of options
    texts = [path.read_text() for path in (ROOT / "benchmarks").glob("*.py")]
    benchmarks = {f"--{name.replace('_', '-')}" for text in texts for name in fields.findall(text)}
    benchmarks |= {option for text in texts for option in OPTION.findall(text)}
    for page in PAGES:
        wrong = {o for o in OPTION.findall(page.read_text()) if o not in known_options | OTHERS | benchmarks}
        assert not wrong, f"{page.name} names {sorted(wrong)}"
