"""Read the JSON body of a request, strictly."""

import json
from dataclasses import MISSING
from typing import Any, Literal, NamedTuple, TypeVar

from unordinal.names import unknown
from unordinal.settings import Range, Setting, served, shown

Asked = TypeVar("Asked")
MODEL = Setting(
    "model",
    str | None,
    None,
    "The model, by its name in /api/v1/models, with or without its prefix; by default the first that can do this.",
    (Range(1, served=200),),
)
BLOCK = Setting(
    "block",
    int | Literal["all"] | None,
    None,
    "Models of blocks: the number of positions of a block; 1 is autoregressive and exact, all a masked diffusion.",
    (Range(1, served=512),),
)
ENVELOPE = (MODEL, BLOCK)
"""What every request may name besides its own fields."""


class Wanted(NamedTuple):
    """The model that a request names."""

    model: str | None = None
    block: int | str | None = None


class RequestError(Exception):
    """A request that cannot be answered.

    Args:
        status: the HTTP status code.
        message: one sentence that says what was expected and what came.
    """

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status
        self.message = message


def read_request(kind: type[Asked], body: bytes) -> tuple[Wanted, Asked]:
    """Return the model that a JSON body names, and the request; raise a `RequestError` for the first mistake.

    >>> from unordinal.tasks.asking import Sample
    >>> read_request(Sample, b'{"num": 3}')[1].num
    3
    >>> read_request(Sample, b'{"nun": 3}')  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    unordinal.web.reading.RequestError: unknown field 'nun'; did you mean num?...
    """
    values = read_json(body)
    if not isinstance(values, dict):
        raise RequestError(400, f"expected a JSON object, got {shown(values)}")
    known = {setting.name: setting for setting in (*ENVELOPE, *served(kind))}
    for name in values:
        if name not in known:
            raise RequestError(422, str(unknown("field", name[:40], known)))
    given: dict[str, Any] = {}
    for name, setting in known.items():
        value = values.get(name)
        if value is None and (setting.default is not MISSING or name not in values):
            if setting.default is MISSING:
                raise RequestError(422, f"the field `{name}` is missing")
            continue
        if int in setting.types and isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON has one kind of number
        value = tuple(value) if setting.is_many and isinstance(value, list) else value
        try:
            setting.check(value, served=True)
            if isinstance(value, str):
                value.encode()
        except UnicodeEncodeError as error:
            raise RequestError(422, f"`{name}` must be a text in Unicode, got half of a surrogate pair") from error
        except ValueError as error:
            raise RequestError(422, str(error)) from error
        given[name] = value
    wanted = Wanted(*(given.pop(setting.name, None) for setting in ENVELOPE))
    try:
        return wanted, kind(**given)
    except ValueError as error:
        raise RequestError(422, str(error)) from error


def read_json(body: bytes) -> Any:
    """Read JSON strictly: UTF-8, no NaN, no field twice."""
    try:
        source = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(400, f"the body is not UTF-8: byte {body[error.start]:#04x} at {error.start}") from error

    def refuse(name: str) -> Any:
        raise RequestError(400, f"{name} is not allowed in JSON; expected a finite number")

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
