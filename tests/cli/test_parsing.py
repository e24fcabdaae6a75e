"""Help and parsing of a command's options."""

import math
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from conftest import Cli, refused
from hypothesis import given
from hypothesis import strategies as st

from unordinal.cli import parsing
from unordinal.cli.parsing import POSITIONAL, Command, help_text, options_of, parse, read
from unordinal.cli.words import split
from unordinal.settings import PYTHON_ONLY, Flag, Range, Request, field_texts


@dataclass(frozen=True)
class Inner:
    width: int = 8
    """Channels."""
    is_deep: bool = True
    """Two lines
    of text."""
    depth: int = 2


@dataclass(frozen=True)
class Args:
    """Try something.

    Examples:
        unordinal try here
        unordinal try there --json
    """

    FIRST: ClassVar = ("minutes", "json")

    run: Annotated[Path, POSITIONAL, Flag(metavar="RUN")]
    """A run."""
    minutes: Annotated[float | None, Flag(metavar="MINUTES")] = None
    """How long."""
    steps: Annotated[int | Literal["all"] | None, Range(1)] = None
    sizes: tuple[int, ...] = (1, 2)
    split: Annotated[Literal["train", "test"], Flag("--data-split")] = "test"
    text: str | None = None
    """A text."""
    json: bool = False
    """Print JSON."""
    hidden: Annotated[int, PYTHON_ONLY] = 3
    """Not on the command line."""


@dataclass(frozen=True)
class Nested:
    """Settings within settings."""

    lr: float = 0.1
    """A rate."""
    inner: Inner = field(default_factory=Inner)


@dataclass(frozen=True)
class Ask(Request):
    """A request."""

    num: Annotated[int, Range(1)] = 4
    """How many."""
    words: str = ""
    """Given otherwise."""


COMMAND = Command.of(Args)


def test_the_docstring_of_the_arguments_describes_the_command() -> None:
    examples = ("unordinal try here", "unordinal try there --json")
    assert Command("unordinal try", "Try something.", examples, ("minutes", "json")) == COMMAND


def test_options_are_the_fields() -> None:
    names = [name for option in options_of(Args) for name in option.names]
    assert names == ["--minutes", "--steps", "--sizes", "--data-split", "--split", "--text", "--json"]
    assert [option.key for option in options_of(Args) if option.is_positional] == ["run"]
    argv = ["here", "--minutes", "3", "--steps", "all", "--sizes", "4", "5", "--split", "train", "--text=", "--json"]
    found = parse(split(argv), Args)
    assert found == Args(Path("here"), 3.0, "all", (4, 5), "train", "", json=True)
    assert parse(split(["here"]), Args) == Args(Path("here"))


def test_options_of_nested_settings_have_dotted_names_and_the_values_of_an_instance_as_defaults() -> None:
    value = Nested(0.5, Inner(16, is_deep=False))
    options = list(options_of(Nested, prefix="model.", value=value))
    assert [(name, option.default) for option in options for name in option.names] == [
        ("--model.lr", 0.5),
        ("--model.inner.width", 16),
        ("--model.inner.is-deep", False),
        ("--model.inner.depth", 2),
    ]
    argv = ["--model.inner.is_deep", "--model.inner.width=7", "--model.lr", "1e-3"]
    assert read(split(argv), COMMAND, options) == {
        "model.inner.is_deep": True,
        "model.inner.width": 7,
        "model.lr": 0.001,
    }
    assert [name for option in options_of(Nested) for name in option.names][2] == "--inner.no-is-deep"
    off = read(split(["--inner.no-is-deep"]), COMMAND, list(options_of(Nested)))
    assert off == {"inner.is_deep": False}


def test_requests_are_read_beside_the_arguments() -> None:
    args, asked = parse(split(["here", "--num", "7", "--json"]), Args, Ask, skip=("words",))
    assert args == Args(Path("here"), json=True)
    assert asked == {"num": 7}  # what is not given is left to the request
    assert parse(split(["here"]), Args, Ask)[1] == {}
    for wrong in ("--progress", "--hidden", "--words"):
        with pytest.raises(ValueError, match=f"unknown option '{wrong}'"):
            parse(split(["here", wrong, "3"]), Args, Ask, skip=("words",))


def test_words_behind_the_value_of_an_option_are_arguments() -> None:
    assert parse(split(["--minutes", "3", "here"]), Args) == Args(Path("here"), 3.0)
    assert parse(split(["--json", "here", "--minutes=3"]), Args) == Args(Path("here"), 3.0, json=True)
    assert parse(split(["here", "--minutes", "3", "--minutes", "4"]), Args).minutes == 4  # the last one counts


def test_texts_of_fields() -> None:
    assert field_texts(Inner) == {"width": "Channels.", "is_deep": "Two lines of text.", "depth": ""}
    assert field_texts(Args)["minutes"] == "How long."


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["here", "--minutes", "abc"], "--minutes must be a number, got 'abc'"),
        (["here", "--minutes=abc"], "--minutes must be a number, got 'abc'"),
        (["here", "--minutes"], "--minutes needs a value: a number"),
        (["here", "--steps", "al"], "--steps must be a whole number of at least 1 or all, got 'al'"),
        (["here", "--steps", "2.5"], "--steps must be a whole number of at least 1 or all, got '2.5'"),
        (["here", "--sizes", "3", "x"], "--sizes must be a whole number, got 'x'"),
        (["here", "--sizes"], "--sizes needs a value"),
        (["here", "--split", "tset"], "--split must be one of train, test, got 'tset'"),
        (["here", "--data-split", "tset"], "--data-split must be one of train, test, got 'tset'"),
        (["here", "--minuts", "3"], r"unknown option '--minuts'; did you mean --minutes\?"),
        (["here", "there"], "does not know what to do with 'there'; see unordinal try --help"),
        (["here", "--json=yes"], "does not know what to do with 'yes'"),
        ([], r"RUN is missing \(A run\); for example: unordinal try here"),
        (["--json"], r"RUN is missing \(A run\)"),
    ],
)
def test_wrong_words_get_one_line(words: list[str], told: str) -> None:
    with pytest.raises(ValueError, match=told) as error:
        parse(split(words), Args)
    assert "\n" not in str(error.value)


def test_none_is_a_value_of_options_that_may_be_without_one_but_not_of_texts() -> None:
    assert parse(split(["here", "--steps", "3", "--steps", "None"]), Args).steps is None
    assert parse(split(["here", "--minutes", "None"]), Args).minutes is None
    assert parse(split(["here", "--text", "None"]), Args).text == "None"
    with pytest.raises(ValueError, match="--sizes must be a whole number, got 'None'"):
        parse(split(["here", "--sizes", "None"]), Args)


@given(st.floats(allow_nan=False), st.integers(-(10**20), 10**20), st.text(max_size=9))
def test_values_come_back_as_they_were_written(number: float, whole: int, text: str) -> None:
    argv = ["here", f"--minutes={number!r}", f"--sizes={whole}", f"--text={text}"]
    found = parse(split(argv), Args)
    assert (found.minutes, found.sizes) == (number, (whole,))
    assert found.text == text


def test_numbers_that_are_none_are_left_to_the_checks_of_ranges() -> None:
    assert math.isnan(parse(split(["here", "--minutes", "nan"]), Args).minutes)
    assert parse(split(["here", "--steps", "-3"]), Args).steps == -3


def test_a_value_can_be_the_content_of_a_file(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Source:
        colours: Annotated[str | None, Flag(metavar="FILE")] = None
        """Lines."""

    (tmp_path / "colours.txt").write_text("road #804080\n")
    options = list(options_of(Source))
    words = split(["--colours", str(tmp_path / "colours.txt")])
    assert read(words, COMMAND, options) == {"colours": "road #804080\n"}
    with pytest.raises(ValueError, match=r"cannot read .*none\.txt"):
        read(split(["--colours", str(tmp_path / "none.txt")]), COMMAND, options)


def test_messages_know_the_options_of_the_command_that_runs() -> None:
    parse(split(["here"]), Args)
    assert {"--minutes", "--split", "--data-split", "--max-bytes"} <= parsing.known_flags
    read(split([]), COMMAND, list(options_of(Nested)))
    assert {"--lr", "--inner.width", "--inner.no-is-deep", "--inner.depth", "--max-bytes"} <= parsing.known_flags
    assert not {"--minutes", "--split", "--data-split"} & parsing.known_flags


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stop:
        parse(split(words), Args, Nested)
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_help_is_short_first(capsys: pytest.CaptureFixture[str]) -> None:
    short = printed(["--help"], capsys)
    assert printed(["-h", "--wrong"], capsys) == short  # whatever else is said
    assert "usage: unordinal try RUN [options]" in short
    assert "examples:\n  unordinal try here\n  unordinal try there --json\n" in short
    assert "--minutes MINUTES" in short
    assert "--steps" not in short
    assert "8 more options: unordinal try --help-all" in short
    whole = printed(["--help-all"], capsys)
    assert "--steps N|all" in whole
    assert "--data-split train|test" in whole
    assert "--sizes N ..." in whole
    assert "(default 1 2)" in whole
    assert "Do not two lines of text." in whole
    assert "--hidden" not in whole
    assert "more options" not in whole


def test_help_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for columns in (20, 60, 88, 500):
        monkeypatch.setenv("COLUMNS", str(columns))
        options = [option for kind in (Args, Nested) for option in options_of(kind)]
        command = Command("unordinal try", "A long summary, " * 20 + "\n\nin two parts.", ("unordinal try here",))
        lines = help_text(command, options, is_whole=True).splitlines()
        assert max(map(len, lines)) <= max(60, min(100, columns))
        assert "in two parts." in lines


def test_an_argument_that_may_be_left_out_stands_in_brackets() -> None:
    @dataclass(frozen=True)
    class Optional:
        """Try.

        Examples:
            unordinal try
        """

        name: Annotated[str | None, POSITIONAL] = None
        """A name."""

    (option,) = options_of(Optional)
    assert "usage: unordinal try [TEXT] [options]" in help_text(COMMAND, [option], is_whole=True)
    assert parse(split([]), Optional) == Optional()
    assert parse(split(["a"]), Optional) == Optional("a")
    assert next(iter(options_of(Args))).default is MISSING


def test_the_real_commands(cli: Cli) -> None:
    short = cli("train", "arm", "--help").out
    options = [line for line in short.splitlines() if line.startswith("  --")]
    assert len(options) == 12
    assert "unordinal train arm --data book.txt --minutes 5\n" in short
    whole = cli("train", "cityscapes/multinomial", "--help-all").out
    assert "--no-flips" in whole
    assert "Do not mirror training maps" in " ".join(whole.split())
    refused(cli("train", "arm", "--data", "docs", "--minutes", "abc"), "--minutes must be a number above 0, got 'abc'")
    refused(cli("evaluate", "run", "--k", "1.5"), "--k must be a whole number of at least 1, got '1.5'")


@pytest.mark.parametrize(
    "words",
    [
        ["train", "text8/argmax-ar"],
        ["train", "text8/multinomial"],
        ["train", "absorbing", "--data", "streets"],
        ["train", "cityscapes/vae"],
        *(["evaluate"], ["sample"], ["correct"], ["fill"], ["bits"], ["compare"], ["bench", "sampling"], ["serve"]),
        *(["demo"], ["export"], ["runs"], ["presets"], ["data"], ["data", "streets"]),
    ],
    ids=" ".join,
)
def test_every_option_is_described(words: list[str], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def shown(_command: Command, options: list[Any], **_: Any) -> str:
        seen.extend(options)
        return ""

    monkeypatch.setattr(parsing, "help_text", shown)
    assert cli(*words, "--help-all").code == 0
    assert seen
    assert [option.key for option in seen if not option.setting.text.strip()] == []
    names = [name for option in seen for name in option.names]
    assert len(names) == len(set(names))  # no name stands for two options
