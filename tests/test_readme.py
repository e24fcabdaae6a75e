"""What the README and the guides show works as shown (with smaller budgets)."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import LEARNED, RUN, Cli, small_flags

ROOT = Path(__file__).parents[1]


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


def commands(path: Path) -> list[list[str]]:
    lines = "\n".join(blocks(path, "sh")).splitlines()
    lines += [line.strip() for line in path.read_text().splitlines() if line.startswith("    unordinal ")]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("unordinal ")]


def shortened(words: list[str]) -> list[str]:
    """The same command, a few steps of a small network long."""
    if words[1] != "train":
        return words[1:]
    others = {"text8.prefix.xz": "letters.txt", "adult.csv.xz": "people.csv"}  # data that are not ours
    kept = [others.get(word, word) for word in words[1:]]
    data = kept[kept.index("--data") + 1] if "--data" in kept else ""
    for flag in ("--minutes", "--steps", "--data-split", "--validate-examples"):
        if flag in kept:
            del kept[kept.index(flag) : kept.index(flag) + 2]
    if "--size" in kept:
        del kept[kept.index("--size") : kept.index("--size") + 2]
    steps = ["--steps", "2"] if kept[1] in LEARNED or "/" in kept[1] else []
    small = [*RUN, "--length", "16"] if "--init" in kept else small_flags(kept[1], data)
    if "names" in data and "--length" in small:  # lines have their own lengths
        del small[small.index("--length") : small.index("--length") + 2]
    return [*kept, *small, *steps]


@pytest.mark.parametrize(
    "name", ["README.md", "docs/tables.md", "docs/lines.md", pytest.param("docs/quickstart.md", marks=pytest.mark.slow)]
)
def test_commands_run(name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unordinal.web.server.serve", lambda *_: None)  # it would serve until it is stopped
    monkeypatch.setattr("unordinal.cli.serve.check_port", lambda *_: None)
    (tmp_path / "book.txt").write_text("It is a truth universally acknowledged, " * 200)
    people = "age,income,job\n" + "".join(
        f"{17 + n % 60},{'>50K' if n % 3 else '<=50K'},{'ab'[n % 2]}\n" for n in range(600)
    )
    (tmp_path / "people.csv").write_text(people + "30,,a\n")
    (tmp_path / "names.txt").write_text("".join(f"get_{name}\n" for name in sorted(dir(str)) * 3))
    (tmp_path / "letters.txt").write_text("a truth universally acknowledged " * 200)
    shown = commands(ROOT / name)
    assert len(shown) >= 3
    for words in shown:
        short = shortened(words)
        if short[0] == "sample" and "--steps" in short:
            short[short.index("--steps") + 1] = "10"
        short = ["keep" if word == "resample" else word for word in short]  # two steps teach no valid code
        result = cli(*short)
        assert result.code == 0, (words, result.err)


TASKS = [
    "docs/examples.md",
    "docs/lines.md",
    "docs/tables.md",
    "docs/correcting.md",
    "docs/filling.md",
    "docs/surprise.md",
]


@pytest.mark.parametrize("name", ["README.md", "docs/extending.md", *TASKS])
def test_python_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = blocks(ROOT / name, "python")
    assert shown
    for code in shown:
        exec(compile(code, name, "exec"), {"__name__": "__main__"})


def test_links_and_pictures_exist() -> None:
    for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
            if not target.startswith("http"):
                assert (path.parent / target).exists(), f"{path.name} points to {target}"


def test_readme_names_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    assert len(blocks(ROOT / "README.md", "python")[0].strip().splitlines()) <= 10
