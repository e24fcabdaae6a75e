"""The options of a command, made from dataclasses: their values, their help, and one line for a mistake."""

import dataclasses
import inspect
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_origin

from unordinal.cli.common import text_of
from unordinal.cli.words import EVERYWHERE, HELP, Words
from unordinal.names import unknown
from unordinal.settings import PYTHON_ONLY, Flag, Setting, settings_of

Kind = TypeVar("Kind")
POSITIONAL = "positional"  # a mark of fields that are given without a name
known_flags: set[str] = set()  # the options of the command that runs, by which error messages call settings
METAVARS: dict[Any, str] = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


@dataclass(frozen=True)
class Command:
    """How a command is called, and what its help says."""

    prog: str
    summary: str
    examples: tuple[str, ...]
    first: tuple[str, ...] = ()  # the options that people use first, by field; none for all of them

    @staticmethod
    def of(kind: type) -> "Command":
        """Return the command that a dataclass of arguments describes: its docstring is the help, and has examples."""
        summary, _, shown = (inspect.getdoc(kind) or "").partition("\n\nExamples:\n")
        examples = tuple(line.strip() for line in shown.splitlines())
        return Command(" ".join(examples[0].split()[:2]), summary, examples, getattr(kind, "FIRST", ()))


@dataclass(frozen=True)
class Option:
    """One argument of a command."""

    setting: Setting
    key: str  # the dotted name of its value
    default: Any

    @property
    def is_positional(self) -> bool:
        return POSITIONAL in self.setting.marks

    @property
    def is_flag(self) -> bool:
        return self.setting.type is bool

    @property
    def is_off(self) -> bool:
        """Whether the option turns off what is on by default."""
        return self.is_flag and self.default is True

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the option, such as --optim.matrix-lr; a positional one has none."""
        if self.is_positional:
            return ()
        path, _, name = self.key.rpartition(".")
        flag = f"--{path}{'.' * bool(path)}{'no-' * self.is_off}{name}".replace("_", "-")
        aliases = tuple(mark.alias for mark in self.setting.marks if isinstance(mark, Flag) and mark.alias)
        return (*aliases, flag) if aliases and not path else (flag, *aliases)

    @property
    def metavar(self) -> str:
        if self.is_flag:
            return ""
        given = next((mark.metavar for mark in self.setting.marks if isinstance(mark, Flag) and mark.metavar), "")
        plain = [METAVARS[kind] for kind in self.setting.types if kind in METAVARS]
        found = given or "|".join([*plain, *self.setting.choices]) or "TEXT"
        return f"{found} ..." if self.setting.is_many else found

    def value(self, name: str, words: list[str]) -> Any:
        """Return the value of words; raise a ValueError if they are not one."""
        if self.metavar == "FILE":
            return text_of(Path(words[0]))
        found = [self.converted(name, word) for word in words]
        return tuple(found) if self.setting.is_many else found[0]

    def converted(self, name: str, word: str) -> Any:
        for kind in self.setting.types:
            if get_origin(kind) is Literal and word in self.setting.choices:
                return word
            if kind is NoneType and word == "None" and str not in self.setting.types:
                return None
            if kind in (int, float, Path):
                try:
                    return kind(word)
                except ValueError:
                    continue
        if str in self.setting.types or Any in self.setting.types:
            return word
        raise ValueError(f"{name} must be {self.setting.expected() or 'a value'}, got {word!r}")


def options_of(kind: type, *, prefix: str = "", value: Any = None, skip: tuple[str, ...] = ()) -> Iterator[Option]:
    """Yield the options of a dataclass; those of nested dataclasses have dotted names.

    Args:
        kind: the dataclass.
        prefix: what stands before the names.
        value: an instance, whose values are the defaults.
        skip: fields that are not options.
    """
    for name, setting in settings_of(kind).items():
        if PYTHON_ONLY in setting.marks or name in skip:
            continue
        default = setting.default if value is None else getattr(value, name)
        if dataclasses.is_dataclass(default) and not isinstance(default, type):
            yield from options_of(type(default), prefix=f"{prefix}{name}.", value=default)
        else:
            yield Option(setting, f"{prefix}{name}", default)


def read(words: Words, command: Command, options: list[Option]) -> dict[str, Any]:
    """Return the values that are given, by their dotted names; or print the help, or raise a ValueError of one line."""
    known_flags.clear()
    known_flags.update(EVERYWHERE, (name for option in options for name in option.names))
    if words.has(*HELP):
        print(help_text(command, options, is_whole=words.has("--help-all")))
        raise SystemExit(0)
    by_name = {name: option for option in options for name in option.names}
    values: dict[str, Any] = {}
    plain = list(words.plain)
    for name, rest in words.groups:
        if name not in by_name:
            near = [known for known in by_name if known.count(".") < 2 or "." in name]
            raise unknown("option", name, near, listed_by=f"`{command.prog} --help-all` lists all of them", cutoff=0.7)
        option = by_name[name]
        num = 0 if option.is_flag else len(rest) if option.setting.is_many else 1
        if not option.is_flag and not rest:
            raise ValueError(f"{name} needs a value: {option.setting.expected() or 'a text'}")
        found = not option.is_off if option.is_flag else option.value(name, list(rest[:num]))
        if option.setting.is_many and option.key in values:  # given several times
            found = values[option.key] + found
        values[option.key] = found
        plain += rest[num:]
    for option in (option for option in options if option.is_positional):
        if plain:
            num = len(plain) if option.setting.is_many else 1
            values[option.key] = option.value(option.metavar, plain[:num])
            plain = plain[num:]
        elif option.default is MISSING:
            lacks = f"{option.metavar} is missing ({option.setting.text.rstrip('.')})"
            raise ValueError(f"{lacks}; for example: {command.examples[0]}")
    if plain:
        raise ValueError(f"{command.prog} does not know what to do with {plain[0]!r}; see {command.prog} --help")
    return values


def parse(words: Words, kind: type[Kind], *asked: type, skip: tuple[str, ...] = ()) -> Any:
    """Return the arguments of a command, and the fields of each request that are given, as dicts.

    Args:
        words: the words of the command line.
        kind: the dataclass of its arguments, which describes the command.
        asked: the requests whose fields are options too.
        skip: fields of the requests that are not options.
    """
    parts = [list(options_of(kind)), *(list(options_of(part, skip=skip)) for part in asked)]
    every = {option.key: option for options in reversed(parts) for option in options}  # requests may share a field
    ordered = {option.key: every[option.key] for options in parts for option in options}
    values = read(words, Command.of(kind), list(ordered.values()))
    given = [given_of(options, values) for options in parts]
    return kind(**given[0]) if not asked else (kind(**given[0]), *given[1:])


def given_of(options: list[Option], values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of some options, by their dotted names."""
    return {option.key: values[option.key] for option in options if option.key in values}


def help_text(command: Command, options: list[Option], *, is_whole: bool) -> str:
    """Return the help of a command: everything, or the options that people use first."""
    columns = max(60, min(100, shutil.get_terminal_size((88, 24)).columns))
    positional = [option for option in options if option.is_positional]
    shown = [option for option in options if not option.is_positional]
    rest = 0
    if command.first and not is_whole:
        by_field = {option.key.rpartition(".")[2]: option for option in reversed(shown)}
        first = [by_field[field] for field in command.first if field in by_field]
        rest, shown = len(shown) - len(first), first
    optional = [f"[{o.metavar}]" if o.default is not MISSING else o.metavar for o in positional]
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
    """Return the lines of one option."""
    name = " ".join(part for part in (option.names[0] if option.names else "", option.metavar) if part)
    text = option.setting.text[:1].upper() + option.setting.text[1:]
    if option.is_off:  # the texts of flags begin with a verb
        text = f"Do not {text[:1].lower()}{text[1:]}"
    elif not option.is_flag and option.default not in (None, MISSING, "", ()):
        value = option.default
        shown = " ".join(map(str, value)) if isinstance(value, tuple) else f"{value}"
        text = f"{text.rstrip('.')} (default {shown})."
    indent = " " * 26
    body = textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=indent)
    if len(name) <= 22 and body:
        return [f"  {name:<24}{body[0].strip()}", *body[1:]]
    return [f"  {name}", *body]
