"""Help and parsing of a command's options."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest
import tyro
from conftest import Cli, refused

from unordinal.cli.flags import Command, field_texts, options_of, parse


@dataclass(frozen=True)
class Inner:
    width: int = 8  # channels
    # Two lines
    # of comment
    is_deep: bool = True
    depth: int = 2


@dataclass(frozen=True)
class Args:
    """Some arguments."""

    run: tyro.conf.Positional[Path]
    """A run."""
    minutes: float | None = None
    """How long."""
    steps: int | Literal["all"] | None = None
    sizes: tuple[int, ...] = (1, 2)
    split: Literal["train", "test"] = "test"
    inner: Inner = field(default_factory=Inner)
    flat: Annotated[Inner, tyro.conf.arg(name="")] = field(default_factory=Inner)
    json: bool = False


COMMAND = Command("unordinal try", "Try something.", ("unordinal try here",), first=("minutes", "json"))


def test_options_are_those_that_tyro_knows() -> None:
    names = [name for option in options_of(Args, None) for name in option.names]
    assert names == [
        *("--minutes", "--steps", "--sizes", "--split"),
        *("--inner.width", "--inner.no-is-deep", "--inner.depth"),
        *("--width", "--no-is-deep", "--depth", "--json"),
    ]
    argv = ["here", "--minutes", "3", "--steps", "all", "--sizes", "4", "5", "--split", "train", "--inner.no-is-deep"]
    found = parse(Args, [*argv, "--width=7", "--json"], COMMAND)
    inner = Inner(is_deep=False)
    assert found == Args(Path("here"), 3.0, "all", (4, 5), "train", inner, Inner(7), json=True)


def test_texts_of_fields() -> None:
    assert field_texts(Inner) == {"width": "channels", "is_deep": "Two lines of comment", "depth": ""}
    assert field_texts(Args)["minutes"] == "How long."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["here", "--minutes", "abc"], "--minutes takes a number, got 'abc'"),
        (["here", "--minutes=abc"], "--minutes takes a number, got 'abc'"),
        (["here", "--minutes"], "--minutes needs a value: a number"),
        (["here", "--steps", "al"], "--steps takes a whole number or all, got 'al'"),
        (["here", "--sizes", "3", "x"], "--sizes takes a whole number, got 'x'"),
        (["here", "--split", "tset"], "--split takes one of train, test, got 'tset'"),
        (["here", "--minuts", "3"], "unknown option '--minuts'; did you mean --minutes?"),
        (["here", "there"], "does not know what to do with 'there'"),
        ([], r"RUN is missing \(A run\); for example: unordinal try here"),
    ],
)
def test_wrong_words_get_one_line(words: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told) as error:
        parse(Args, words, COMMAND)
    assert "\n" not in str(error.value)


def test_help_is_short_first(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(Args, ["--help"], COMMAND)
    short = capsys.readouterr().out
    assert "usage: unordinal try RUN [options]" in short
    assert "examples:\n  unordinal try here\n" in short
    assert "--minutes MINUTES" in short
    assert "--steps" not in short
    assert "9 more options: unordinal try --help-all" in short
    with pytest.raises(SystemExit):
        parse(Args, ["--help-all"], COMMAND)
    whole = capsys.readouterr().out
    assert "--steps STEPS" in whole
    assert "--split train|test" in whole
    assert "Do not two lines of comment" in whole


def test_the_real_commands(cli: Cli) -> None:
    short = cli("train", "arm", "--help").out
    options = [line for line in short.splitlines() if line.startswith("  --")]
    assert len(options) == 10
    assert "unordinal train arm --data book.txt --minutes 5\n" in short
    assert "--no-flips" in cli("train", "cityscapes/multinomial", "--help-all").out
    assert "Do not mirror training maps" in cli("train", "cityscapes/multinomial", "--help-all").out
    refused(cli("train", "arm", "--data", "docs", "--minutes", "abc"), "--minutes takes a number, got 'abc'")
    refused(cli("evaluate", "run", "--k", "1.5"), "--k takes a whole number, got '1.5'")
