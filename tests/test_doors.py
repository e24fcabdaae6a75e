"""The doors: a request is declared once, a command line is walked once, and the name of data is parsed once."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import unordinal.data
from unordinal import cli

SOURCE = Path(__file__).parents[1] / "src"

# Where a new field of a request must turn up: Python's signature and help, an option, its help, JSON and OpenAPI.
PROBE = """
import inspect, json, sys
from unordinal.api import Run
from unordinal.cli.parsing import Command, help_text, options_of, read
from unordinal.cli.words import split
from unordinal.web.openapi import openapi
from unordinal.web.reading import RequestError, read_request
import importlib
module, kind, method, command, required = sys.argv[1:6]
request = getattr(importlib.import_module(f"unordinal.{module}"), kind)
spec = Command.of(getattr(importlib.import_module(f"unordinal.cli.{command}"), f"{command.capitalize()}Args"))
signature = inspect.signature(getattr(Run, method))
print("python", signature.parameters["sharpness"].default, "How sharp" in inspect.getdoc(getattr(Run, method)))
options = list(options_of(request, skip=("text",)))
print("flag", read(split(["--sharpness", "7"]), spec, options)["sharpness"])
shown = help_text(spec, options, is_whole=True)
print("help", "--sharpness N" in shown, "How sharp" in shown)
if required != "-":
    body = {**json.loads(required), "sharpness": 8}
    print("json", read_request(request, json.dumps(body).encode())[1].sharpness)
    try:
        read_request(request, json.dumps({**body, "sharpness": 10}).encode())
    except RequestError as error:
        print("range", error.message)
    print("openapi", openapi("1")["components"]["schemas"][kind]["properties"]["sharpness"]["maximum"])
"""
FIELD = '    sharpness: Annotated[int, Range(1, 9)] = 3\n    """How sharp."""\n'
REQUESTS = {
    "Sample": ("tasks/asking.py", "sample", "sample", "{}"),
    "Correct": ("tasks/correcting.py", "correct", "correct", '{"text": "a"}'),
    "Fill": ("tasks/filling.py", "fill", "fill", '{"text": "a"}'),
    "Measure": ("tasks/lines.py", "bits", "bits", '{"text": "a"}'),
    "Evaluate": ("evaluate/likelihood.py", "score", "evaluate", "-"),
}


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_new_field_of_a_request_is_in_all_five_places(kind: str, tmp_path: Path) -> None:
    file, method, command, body = REQUESTS[kind]
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("*.safetensors", "__pycache__"))
    path = tmp_path / "src" / "unordinal" / file
    text = path.read_text()
    start = text.index(f"class {kind}(Request)")
    end = text.index("    seed: Seed = 0\n" if kind != "Correct" else "    passes: ", start)
    path.write_text(text[:end] + FIELD + text[end:])
    module = file.removesuffix(".py").replace("/", ".")
    done = subprocess.run(
        [sys.executable, "-c", PROBE, module, kind, method, command, body],
        capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path / "src"), "PATH": ""}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    served = ["json 8", "range `sharpness` must be a whole number between 1 and 9, got 10", "openapi 9"]
    expected = ["python 3 True", "flag 7", "help True True", *(served if body != "-" else [])]
    assert done.stdout.splitlines() == expected


class CountedWords(list[str]):
    """A command line that counts how often it is walked."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        raise AssertionError("a command line is walked, not looked into")


def test_a_command_line_is_walked_once_and_a_name_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    book = tmp_path / "a=b.txt"  # an equals sign in a name is no assignment
    book.write_text("the cat sat on the mat " * 400)
    parsed: list[object] = []
    original = unordinal.data.source_of

    def counted(what: object, **settings: Any) -> unordinal.data.Source:
        parsed.append(what)
        return original(what, **settings)

    monkeypatch.setattr(unordinal.data, "source_of", counted)
    words = CountedWords(
        ["train", "arm", "--data", str(book), "--steps", "1", "--length", "16", "--validate-examples=2"]
    )
    words += ["--out", str(tmp_path / "run"), "--model.net.width", "8", "--model.net.num-heads", "1"]
    assert cli.run(words) == 0, capsys.readouterr().err
    assert words.walks == 1
    assert parsed == [str(book)]
    assert "Counts of pairs of the training data give" in capsys.readouterr().err
