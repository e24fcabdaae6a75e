"""The options of a command, read from its dataclass: their help, and one clear line where a value is not one of theirs.

tyro turns the words into values; what it would say of wrong ones in a box of ten lines is said here in one.
"""

import ast
import dataclasses
import inspect
import io
import re
import shutil
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro

from unordinal.names import unknown

T = TypeVar("T")
CONFIG = (tyro.conf.FlagCreatePairsOff, tyro.conf.AvoidSubcommands)

# What stands for a value in the help, by the option's name; others are named by their type.
METAVARS = {
    "preset": "MODEL",
    "run": "RUN",
    "first": "RUN",
    "second": "RUN",
    "name": "DATA",
    "what": "WHAT",
    "data": "DATA",
    "minutes": "MINUTES",
    "steps": "STEPS",
    "epochs": "EPOCHS",
    "presets": "MODEL",
    "data_split": "TRAIN,VAL,TEST",
    "temperature": "T",
}
TYPE_NAMES: dict[Any, tuple[str, str]] = {
    int: ("N", "a whole number"),
    float: ("NUMBER", "a number"),
    Path: ("PATH", "a path"),
    str: ("TEXT", "a text"),
}


@dataclass(frozen=True)
class Command:
    """How a command is called, and what its help says."""

    prog: str
    summary: str
    examples: tuple[str, ...]
    first: tuple[str, ...] = ()  # the options that people use first, by field; none for all of them


@dataclass(frozen=True)
class Option:
    """One argument of a command."""

    names: tuple[str, ...]  # --lr, --optim.matrix-lr; a positional one has none
    field: str
    type: Any
    text: str
    default: Any

    @property
    def is_flag(self) -> bool:
        return self.type is bool

    @property
    def types(self) -> tuple[Any, ...]:
        """What a value may be; several where it is a union, the type of one item where it is a tuple."""
        inner = get_args(self.type)[0] if get_origin(self.type) is tuple else self.type
        return get_args(inner) if get_origin(inner) in (Union, UnionType) else (inner,)

    @property
    def choices(self) -> list[str]:
        return [str(c) for t in self.types if get_origin(t) is Literal for c in get_args(t)]

    @property
    def metavar(self) -> str:
        if self.is_flag:
            return ""
        plain = [TYPE_NAMES[t][0] for t in self.types if t in TYPE_NAMES]
        shown = METAVARS.get(self.field) or "|".join([*plain, *self.choices])
        return f"{shown} ..." if get_origin(self.type) is tuple else shown

    @property
    def expected(self) -> str:
        words = [TYPE_NAMES[t][1] for t in self.types if t in TYPE_NAMES]
        choices = self.choices
        return " or ".join([*words, *([f"one of {', '.join(choices)}"] if len(choices) > 1 else choices)])

    def accepts(self, word: str) -> bool:
        for kind in self.types:
            if kind in (str, Path) or (kind is NoneType and word == "None"):
                return True
            if get_origin(kind) is Literal and word in self.choices:
                return True
            if kind in (int, float):
                try:
                    kind(word)
                    return True
                except ValueError:
                    continue
        return False


def parse(kind: type[T], argv: list[str], command: Command, default: Any = None) -> T:
    """The values of a command's options, or its help, or an error of one line."""
    options = list(options_of(kind, default))
    if {"-h", "--help", "--help-all"} & set(argv):
        print(help_text(command, options, is_whole="--help-all" in argv))
        raise SystemExit(0)
    check_words(argv, options, command)
    given: dict[str, Any] = {} if default is None else {"default": default}
    return tyro.cli(kind, args=argv, prog=command.prog, config=CONFIG, **given)


def options_of(kind: Any, default: Any, prefix: str = "") -> Iterator[Option]:
    """All options of a dataclass, those of nested ones included."""
    texts = field_texts(get_origin(kind) or kind)
    hints = get_type_hints(get_origin(kind) or kind, include_extras=True)
    for field in dataclasses.fields(get_origin(kind) or kind):
        hint, marks = hints[field.name], list[Any]()
        if get_origin(hint) is Annotated:
            hint, *marks = get_args(hint)
        value = default_of(field) if default is None else getattr(default, field.name)
        flag = field.name.replace("_", "-")
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            is_flat = any(getattr(mark, "name", None) == "" for mark in marks)
            yield from options_of(type(value), value, prefix if is_flat else f"{prefix}{flag}.")
            continue
        aliases = [alias for mark in marks for alias in getattr(mark, "aliases", None) or ()]
        is_positional = tyro.conf.Positional in marks
        is_off = hint is bool and value is True
        names = () if is_positional else (f"--{prefix}{'no-' * is_off}{flag}", *aliases)
        if is_positional and default is not None:  # it was given, and chose the defaults of the others
            value = dataclasses.MISSING
        yield Option(names, field.name, hint, texts.get(field.name, ""), value)


def default_of(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


@lru_cache
def field_texts(kind: type) -> dict[str, str]:
    """What is written about each field of a dataclass: the string below it, or the comment behind or above it."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        source = textwrap.dedent(inspect.getsource(base))
        behind, above = comments_of(source)
        body = ast.parse(source).body[0]
        assert isinstance(body, ast.ClassDef)
        for node, after in zip(body.body, [*body.body[1:], None], strict=True):
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
                continue
            text = behind.get(node.end_lineno or 0) or above.get(node.lineno - 1, "")
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = " ".join(str(after.value.value).split())
            found[node.target.id] = text
    return found


def comments_of(source: str) -> tuple[dict[int, str], dict[int, str]]:
    """Comments behind code, by their lines, and comments on lines of their own, by the last of their lines."""
    behind: dict[int, str] = {}
    above: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("# ").strip()
            if token.line.lstrip().startswith("#"):
                above[line] = f"{above.pop(line - 1, '')} {text}".strip()
            else:
                behind[line] = text
    return behind, above


def check_words(argv: list[str], options: list[Option], command: Command) -> None:
    """Refuse, in one line, an option that there is not, a value that an option cannot have, and one that is missing."""
    by_name = {name: option for option in options for name in option.names}
    positional = [option for option in options if not option.names]
    words = [part for word in argv for part in (word.split("=", 1) if word.startswith("--") else [word])]
    at = num_positional = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not is_option(word):
            is_more = bool(positional) and get_origin(positional[-1].type) is tuple  # the last one takes all that come
            if num_positional >= len(positional) and not is_more:
                raise ValueError(f"{command.prog} does not know what to do with {word!r}; see {command.prog} --help")
            num_positional += 1
            continue
        name = word.replace("_", "-")
        if name not in by_name:
            listed = f"`{command.prog} --help-all` lists all of them"
            near = [n for n in by_name if n.count(".") < 2 or "." in word]
            raise unknown("option", word, near, listed_by=listed, cutoff=0.7)
        option = by_name[name]
        if option.is_flag:
            continue
        values: list[str] = []
        while at < len(words) and not is_option(words[at]) and (not values or get_origin(option.type) is tuple):
            values.append(words[at])
            at += 1
        if not values:
            raise ValueError(f"{word} needs a value: {option.expected}")
        for value in values:
            if not option.accepts(value):
                raise ValueError(f"{word} takes {option.expected}, got {value!r}")
    for option in positional[num_positional:]:
        if option.default is dataclasses.MISSING:
            lacks = f"{option.metavar} is missing ({option.text.rstrip('.')})"
            raise ValueError(f"{lacks}; for example: {command.examples[0]}")


def is_option(word: str) -> bool:
    return bool(re.match(r"--[a-zA-Z]|-h$", word))


def help_text(command: Command, options: list[Option], *, is_whole: bool) -> str:
    """The help of a command: everything, or the options that people use first."""
    columns = max(60, min(100, shutil.get_terminal_size((88, 24)).columns))
    positional = [option for option in options if not option.names]
    shown = [option for option in options if option.names]
    rest = 0
    if command.first and not is_whole:
        first = [next(option for option in shown if option.field == field) for field in command.first]
        rest, shown = len(shown) - len(first), first
    optional = [f"[{o.metavar}]" if o.default is not dataclasses.MISSING else o.metavar for o in positional]
    lines = [" ".join(["usage:", command.prog, *optional, "[options]"]), ""]
    lines += [line for part in command.summary.split("\n\n") for line in [*textwrap.wrap(part, columns), ""]]
    lines += ["examples:", *(f"  {example}" for example in command.examples), ""]
    if positional:
        lines += ["arguments:", *(line for option in positional for line in described(option, columns)), ""]
    lines += ["options:", *(line for option in shown for line in described(option, columns))]
    if rest:
        lines += ["", f"{rest} more options: {command.prog} --help-all"]
    return "\n".join(lines)


def described(option: Option, columns: int) -> list[str]:
    """The lines of one option."""
    name = " ".join(part for part in (option.names[0] if option.names else "", option.metavar) if part)
    text = option.text[:1].upper() + option.text[1:]
    if option.is_flag and option.default is True:  # the texts of flags say what to do
        text = f"Do not {text[:1].lower()}{text[1:]}"
    elif not option.is_flag and option.default not in (None, dataclasses.MISSING, "", ()):
        value = option.default
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else f"{value}"
        text = f"{text.rstrip('.')} (default {shown})."
    indent = " " * 26
    body = textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=indent)
    if len(name) <= 22 and body:
        return [f"  {name:<24}{body[0].strip()}", *body[1:]]
    return [f"  {name}", *body]
