"""Settings and requests: frozen dataclasses whose fields have a type, a range, a default and a docstring.

A field is declared once. Its declaration checks values from Python, and makes the option of the command line, its help,
the field of a JSON body and its description in the OpenAPI file. Documentation is the string below a field.
"""

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from unordinal.progress import silent

LARGEST_SEED = 2**63 - 1
LARGEST_JSON_INTEGER = 2**53 - 1  # that every reader of JSON can hold


@dataclass(frozen=True)
class Range:
    """The numbers that a field may have, or the numbers of characters of a text.

    Args:
        low: the smallest.
        high: the largest.
        above: all must be larger than this.
        below: all must be smaller than this.
        served: the largest that a server accepts.
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    served: float | None = None

    def limited(self) -> "Range":
        """Return the range that a server accepts."""
        return self if self.served is None else dataclasses.replace(self, high=self.served)

    def holds(self, value: float) -> bool:
        """Return whether a number lies in the range."""
        is_low = (self.low is None or value >= self.low) and (self.above is None or value > self.above)
        return is_low and (self.high is None or value <= self.high) and (self.below is None or value < self.below)

    def __str__(self) -> str:
        if None not in (self.low, self.high):
            return f"between {self.low} and {self.high}"
        words = {"of at least": self.low, "above": self.above, "below": self.below, "of at most": self.high}
        return " and ".join(f"{word} {value:g}" for word, value in words.items() if value is not None)


PYTHON_ONLY = "python only"  # a mark of fields that only Python has
NOT_SERVED = "not served"  # a mark of fields that the server does not have


@dataclass(frozen=True)
class Flag:
    """A mark: another name of a field on the command line, or what stands for its value in the help."""

    alias: str = ""
    metavar: str = ""


@dataclass(frozen=True)
class Setting:
    """A declared field."""

    name: str
    type: Any
    default: Any  # MISSING if a value must be given
    text: str
    marks: tuple[Any, ...]

    @property
    def is_many(self) -> bool:
        """Whether the value may be a tuple of any length."""
        return any(get_origin(kind) is tuple for kind in members(self.type))

    @property
    def types(self) -> tuple[Any, ...]:
        """The types that a value may have; for a tuple, those of an item."""
        items = [get_args(kind)[0] if get_origin(kind) is tuple else kind for kind in members(self.type)]
        return tuple(dict.fromkeys(inner for kind in items for inner in members(kind)))

    @property
    def choices(self) -> tuple[str, ...]:
        return tuple(str(choice) for t in self.types if get_origin(t) is Literal for choice in get_args(t))

    def range(self, *, served: bool = False) -> Range:
        found = next((mark for mark in self.marks if isinstance(mark, Range)), Range())
        return found.limited() if served else found

    def expected(self, *, served: bool = False) -> str:
        """Return what a value may be, in words."""
        span = str(self.range(served=served))
        words = []
        for kind in self.types:
            if kind in (int, float):
                words.append(f"{'a whole number' if kind is int else 'a number'} {span}".strip())
            elif kind is str:
                bounds = self.range(served=served)
                is_one = bounds.low == bounds.high == 1
                words.append("one character" if is_one else f"a text with a length {span}" if span else "a text")
            elif kind is bool:
                words.append("true or false")
            elif get_origin(kind) is list:
                words.append("rows of whole numbers of equal length")
        if self.choices:
            words.append(f"one of {', '.join(self.choices)}" if len(self.choices) > 1 else self.choices[0])
        return " or ".join(words)

    def accepts(self, value: Any, *, served: bool = False) -> bool:
        """Return whether a value is of one of the types, and in the range."""
        if self.is_many and isinstance(value, tuple):
            return all(self.accepts_one(item, served) for item in value)
        return get_origin(self.type) is not tuple and self.accepts_one(value, served)

    def accepts_one(self, value: Any, served: bool) -> bool:
        span = self.range(served=served)
        for kind in self.types:
            if kind is Any and not served:  # what only Python can give
                return True
            if (kind is NoneType and value is None) or (kind is bool and isinstance(value, bool)):
                return True
            if kind is int and isinstance(value, int) and not isinstance(value, bool):
                return span.holds(value)
            if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
                return abs(value) <= sys.float_info.max and span.holds(value)
            if kind is str and isinstance(value, str):
                return span.holds(len(value))
            if get_origin(kind) is Literal and isinstance(value, str) and value in self.choices:
                return True
            if isinstance(kind, type) and kind not in (int, float, str, bool, Any) and isinstance(value, kind):
                return True
            if get_origin(kind) is list and is_grid(value):
                return span.holds(max(len(value), len(value[0])))
        return False

    def check(self, value: Any, *, served: bool = False) -> None:
        """Raise a ValueError if the field cannot have a value."""
        if not self.accepts(value, served=served):
            raise ValueError(f"`{self.name}` must be {self.expected(served=served)}, got {shown(value)}")


def members(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union of types, or the type itself."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def is_grid(value: Any) -> bool:
    """Return whether a value is a list of lists of whole numbers, all of one length."""
    if not (isinstance(value, list) and value and all(isinstance(row, list) and row for row in value)):
        return False
    is_whole = all(isinstance(v, int) and not isinstance(v, bool) for row in value for v in row)
    return is_whole and len({len(row) for row in value}) == 1


def shown(value: Any) -> str:
    """Return a value as a message can show it, cut short.

    >>> shown("a" * 100)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."
    """
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**30:
        return "a huge number"
    found = f"{value:g}" if isinstance(value, float) else repr(value)
    return found if len(found) <= 40 else f"{found[:39]}..."


@lru_cache
def settings_of(kind: type) -> dict[str, Setting]:
    """Return the declared fields of a dataclass by name."""
    texts, hints = field_texts(kind), get_type_hints(kind, include_extras=True)
    found = {}
    for declared in dataclasses.fields(kind):
        hint, marks = hints[declared.name], tuple[Any, ...]()
        if get_origin(hint) is Annotated:
            hint, *rest = get_args(hint)
            marks = tuple(rest)
        default = declared.default
        if declared.default_factory is not MISSING:
            default = declared.default_factory()
        found[declared.name] = Setting(declared.name, hint, default, texts.get(declared.name, ""), marks)
    return found


@lru_cache
def field_texts(kind: type) -> dict[str, str]:
    """Return the documentation of each field of a dataclass."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(base))
        except (OSError, TypeError):  # a class that was made at a prompt
            continue
        body = ast.parse(source).body[0]
        assert isinstance(body, ast.ClassDef)
        for node, after in zip(body.body, [*body.body[1:], None], strict=True):
            if not (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)):
                continue
            found[node.target.id] = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[node.target.id] = " ".join(str(after.value.value).split())
    return found


@dataclass(frozen=True)
class Checked:
    """A base of dataclasses whose values are checked when they are made."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, setting in settings_of(kind).items():
            setting.check(getattr(self, name))


@dataclass(frozen=True)
class Request(Checked):
    """A base of requests: what is asked of a model, in one object."""

    progress: Annotated[Any, PYTHON_ONLY] = field(default=silent, kw_only=True, compare=False, repr=False)
    """A `Progress`, which receives the progress of the work."""


Seed = Annotated[int, Range(0, LARGEST_SEED, served=LARGEST_JSON_INTEGER)]
BatchSize = Annotated[int, Range(1), NOT_SERVED]

Kind = TypeVar("Kind", bound=Request)
Answer = TypeVar("Answer")


def method(kind: type[Kind], answer: Callable[[Any, Kind], Answer]) -> Callable[..., Answer]:
    """Return a method that takes the fields of a request as arguments, with their names, defaults and texts."""
    declared_by: Any = kind
    settings = settings_of(declared_by)

    def call(self: Any, *args: Any, **keywords: Any) -> Answer:
        given = call.__signature__.bind(self, *args, **keywords).arguments  # type: ignore[attr-defined]
        return answer(self, kind(**{name: value for name, value in given.items() if name != "self"}))

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    ordered = sorted(dataclasses.fields(kind), key=lambda f: bool(f.kw_only))
    for declared in ordered:
        setting = settings[declared.name]
        default = inspect.Parameter.empty if setting.default is MISSING else setting.default
        where = inspect.Parameter.KEYWORD_ONLY if declared.kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(declared.name, where, default=default, annotation=setting.type))
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = re.sub("(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()
    lines = [f"        {declared.name}: {settings[declared.name].text}" for declared in ordered]
    call.__doc__ = "\n".join([inspect.getdoc(kind) or "", "", "    Args:", *lines])
    return call


def served(kind: type) -> list[Setting]:
    """Return the fields of a request that a server accepts."""
    return [s for s in settings_of(kind).values() if not {PYTHON_ONLY, NOT_SERVED} & set(map(str, s.marks))]
