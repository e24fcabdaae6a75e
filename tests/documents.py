"""Commands and Python that documents show, to be run with smaller budgets."""

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


def run_commands(path: Path, cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run every command of a document, next to the files that the commands name."""
    monkeypatch.setattr("unordinal.web.server.serve", lambda *_: None)  # it would serve until it is stopped
    monkeypatch.setattr("unordinal.cli.serve.check_port", lambda *_: None)
    (folder / "book.txt").write_text("It is a truth universally acknowledged, " * 200)
    people = "age,income,job\n" + "".join(
        f"{17 + n % 60},{'>50K' if n % 3 else '<=50K'},{'ab'[n % 2]}\n" for n in range(600)
    )
    (folder / "people.csv").write_text(people + "30,,a\n")
    (folder / "names.txt").write_text("".join(f"get_{name}\n" for name in sorted(dir(str)) * 3))
    proteins = [f">p{n}\n{'ACDEFGHIK'[n % 5 :][: 3 + n % 4]}\n" for n in range(200)]
    (folder / "proteins.fasta").write_text("".join(proteins))
    (folder / "labels.txt").write_text("".join(f"{'ab'[n % 2]}\n" for n in range(200)))
    (folder / "letters.txt").write_text("a truth universally acknowledged " * 200)
    shown = commands(path)
    assert len(shown) >= 3
    for words in shown:
        short = shortened(words)
        if short[0] == "sample" and "--steps" in short:
            short[short.index("--steps") + 1] = "10"
        short = ["keep" if word == "resample" else word for word in short]  # two steps teach no valid code
        result = cli(*short)
        assert result.code == 0, (words, result.err)


def run_python(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the Python of a document."""
    monkeypatch.chdir(folder)
    shown = blocks(path, "python")
    assert shown
    for code in shown:
        exec(compile(code, path.name, "exec"), {"__name__": "__main__"})
