"""Requests are checked by the same declarations that describe them."""

from dataclasses import dataclass

import pytest

from unordinal.web.fields import (
    RequestError,
    characters,
    choice,
    grid,
    integer,
    number,
    read_request,
    schema_of,
    setting,
)


@dataclass(frozen=True)
class Wish:
    text: str = setting(characters(5, 1), ..., "A text.")
    num: int = setting(integer(1, 9), 2, "How many.")
    share: float = setting(number(0, 1, is_open=True), 0.5, "A share.")
    kind: str | None = setting(choice("red", "blue"), None, "A colour.")
    rows: list[list[int]] | None = setting(grid(3, -1, 4), None, "A map.")


def test_a_good_request_is_read() -> None:
    found = read_request(Wish, b'{"text": "abc", "num": 3.0, "kind": null, "rows": [[0, -1], [4, 1]]}')
    assert found == Wish("abc", 3, 0.5, None, [[0, -1], [4, 1]])
    assert isinstance(found.num, int)


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b"[1]", 400, "expected a JSON object, got a list"),
        (b'{"text": "\xff"}', 400, "not UTF-8: byte 0xff at 10"),
        (b'{"text": "a", "num": NaN}', 400, "NaN is no number"),
        (b'{"text": "a", "num": 1' + b"0" * 5000 + b"}", 400, "too many digits"),
        (b'{"text": "a", "text": "b"}', 400, "given twice"),
        (b"{}", 422, "the field `text` is missing"),
        (b'{"text": null}', 422, "`text` must be a text, got null"),
        (b'{"text": ""}', 422, "of 1 to 5 characters, got 0"),
        (b'{"text": "abcdef"}', 422, "of 1 to 5 characters, got 6"),
        (b'{"text": "\\ud800"}', 422, "surrogate"),
        (b'{"txt": "a"}', 422, "unknown field 'txt'; did you mean text?"),
        (b'{"text": "a", "num": -1}', 422, "`num` must be a whole number between 1 and 9, got -1"),
        (b'{"text": "a", "num": 1.5}', 422, "got 1.5"),
        (b'{"text": "a", "num": true}', 422, "got true"),
        (b'{"text": "a", "num": 1' + b"0" * 60 + b"}", 422, "got a huge number"),
        (b'{"text": "a", "num": "3"}', 422, 'got "3"'),
        (b'{"text": "a", "num": [[]]}', 422, "got a list"),
        (b'{"text": "a", "share": 1}', 422, "above 0 and below 1, got 1"),
        (b'{"text": "a", "share": 1e999}', 422, "above 0 and below 1"),
        (b'{"text": "a", "share": 1' + b"0" * 400 + b"}", 422, "above 0 and below 1"),
        (b'{"text": "a", "kind": "green"}', 422, 'one of red, blue, got "green"'),
        (b'{"text": "a", "rows": [[1], [1, 2]]}', 422, "rows of equal length"),
        (b'{"text": "a", "rows": [[9]]}', 422, "between -1 and 4"),
        (b'{"text": "a", "rows": [[1], 2]}', 422, "rows of equal length"),
    ],
)
def test_a_bad_request_is_refused_by_name(body: bytes, status: int, part: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_request(Wish, body)
    assert caught.value.status == status
    assert part in caught.value.message
    assert len(caught.value.message) < 200


def test_the_schema_says_what_is_checked() -> None:
    schema = schema_of(Wish)
    assert schema["required"] == ["text"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["num"] == {
        "type": "integer", "minimum": 1, "maximum": 9, "default": 2, "description": "How many.",
    }  # fmt: skip
    assert schema["properties"]["kind"]["enum"] == ["red", "blue", None]
