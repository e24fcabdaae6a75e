"""What a request may hold: one declaration both checks a body and describes it in the OpenAPI file."""

import json
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from unordinal.names import unknown


class RequestError(Exception):
    """A request that cannot be answered.

    Args:
        status: the status of HTTP.
        message: one sentence that says what was expected and what came.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Rule:
    """What a field may hold.

    Args:
        schema: the field as JSON Schema, without its default.
        check: returns what is wrong with a value, or None.
    """

    schema: dict[str, Any]
    check: Callable[[Any], str | None]


def setting(rule: Rule, default: Any, doc: str) -> Any:
    """Return a field of a request; a `default` of `...` makes it required."""
    metadata = {"rule": rule, "doc": doc}
    return field(metadata=metadata) if default is ... else field(default=default, metadata=metadata)


def characters(most: int, least: int = 0) -> Rule:
    """A text of so many characters."""

    def check(value: Any) -> str | None:
        if not isinstance(value, str):
            return f"a text, got {shown(value)}"
        if not least <= len(value) <= most:
            span = f"of {most}" if least == most else f"of at most {most:,}"
            span = f"of {least:,} to {most:,}" if 0 < least < most else span
            return f"a text {span} characters, got {len(value):,}"
        try:
            value.encode()
        except UnicodeEncodeError:
            return "a text in Unicode, got half of a surrogate pair"
        return None

    lengths = {"minLength": least} if least else {}
    return Rule({"type": "string", **lengths, "maxLength": most}, check)


def integer(low: int, high: int) -> Rule:
    """A whole number between two others."""

    def check(value: Any) -> str | None:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON has one kind of number
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            return f"a whole number between {low} and {high}, got {shown(value)}"
        return None

    return Rule({"type": "integer", "minimum": low, "maximum": high}, check)


def number(low: float, high: float, *, is_open: bool = False) -> Rule:
    """A number between two others, which are left out if `is_open`."""

    def check(value: Any) -> str | None:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not (low < value < high if is_open else low <= value <= high):
            span = f"above {low:g} and below {high:g}" if is_open else f"from {low:g} to {high:g}"
            return f"a number {span}, got {shown(value)}"
        return None

    bounds = {"exclusiveMinimum": low, "exclusiveMaximum": high} if is_open else {"minimum": low, "maximum": high}
    return Rule({"type": "number", **bounds}, check)


def choice(*names: str) -> Rule:
    """One of several names."""

    def check(value: Any) -> str | None:
        return None if value in names and isinstance(value, str) else f"one of {', '.join(names)}, got {shown(value)}"

    return Rule({"type": "string", "enum": list(names)}, check)


def grid(most_side: int, low: int, high: int) -> Rule:
    """Rows of equal length, of whole numbers."""

    def check(value: Any) -> str | None:
        is_rows = isinstance(value, list) and 0 < len(value) <= most_side and all(isinstance(r, list) for r in value)
        if not is_rows or not 0 < len(value[0]) <= most_side or len({len(row) for row in value}) != 1:
            return f"1 to {most_side} rows of equal length, at most {most_side}, of classes"
        if any(isinstance(v, bool) or not isinstance(v, int) or not low <= v <= high for row in value for v in row):
            return f"rows of whole numbers between {low} and {high}"
        return None

    cell = {"type": "integer", "minimum": low, "maximum": high}
    row = {"type": "array", "items": cell, "minItems": 1, "maxItems": most_side}
    return Rule({"type": "array", "items": row, "minItems": 1, "maxItems": most_side}, check)


def shown(value: Any) -> str:
    """Return a value as a message can show it, cut short.

    >>> shown("a" * 100)
    '"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'
    """
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    found = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge number"
    return found if len(found) <= 40 else f"{found[:39]}..."


Asked = TypeVar("Asked")


def read_request(kind: type[Asked], body: bytes) -> Asked:
    """Read the JSON body of a request; raise a `RequestError` that names the first thing that is wrong.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Wish:
    ...     num: int = setting(integer(1, 9), 1, "How many.")
    >>> read_request(Wish, b'{"num": 3}')
    Wish(num=3)
    >>> read_request(Wish, b'{"nun": 3}')
    Traceback (most recent call last):
    unordinal.web.fields.RequestError: unknown field 'nun'; did you mean num? (known: num)
    """
    values = read_json(body)
    if not isinstance(values, dict):
        raise RequestError(400, f"expected a JSON object, got {shown(values)}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for name in values:
        if name not in known:
            raise RequestError(422, str(unknown("field", name[:40], known)))
    given = {}
    for name, declared in known.items():
        is_required = declared.default is MISSING
        value: Any = values.get(name)
        if value is None and not is_required:
            continue
        if name not in values:
            raise RequestError(422, f"the field `{name}` is missing")
        wrong = declared.metadata["rule"].check(value)
        if wrong is not None:
            raise RequestError(422, f"`{name}` must be {wrong}")
        is_whole = declared.metadata["rule"].schema["type"] == "integer"
        given[name] = int(value) if is_whole else value
    return kind(**given)


def read_json(body: bytes) -> Any:
    """Read JSON strictly: UTF-8, no NaN, no field twice."""
    try:
        source = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(400, f"the body is not UTF-8: byte {body[error.start]:#04x} at {error.start}") from error

    def refuse(name: str) -> Any:
        raise RequestError(400, f"{name} is no number of JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise RequestError(400, "a field of the JSON object is given twice")
        return found

    try:
        return json.loads(source, parse_constant=refuse, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise RequestError(400, f"the body is not JSON: {error.msg} at character {error.pos}") from error
    except RecursionError as error:
        raise RequestError(400, "the JSON is nested too deeply") from error
    except ValueError as error:
        raise RequestError(400, "the JSON has a number with too many digits") from error


def schema_of(kind: type) -> dict[str, Any]:
    """Return a request as JSON Schema."""
    properties, required = {}, []
    for declared in fields(kind):
        schema = {**declared.metadata["rule"].schema, "description": declared.metadata["doc"]}
        if declared.default is MISSING:
            required.append(declared.name)
        elif declared.default is None:
            schema["type"] = [schema["type"], "null"]
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
        else:
            schema["default"] = declared.default
        properties[declared.name] = schema
    found: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": required} if required else found
