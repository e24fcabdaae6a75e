"""Requests are read strictly, and checked by the same declarations that describe them."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from unordinal.settings import PYTHON_ONLY, Range, Request
from unordinal.tasks.asking import Sample
from unordinal.tasks.filling import FillMap
from unordinal.tasks.lines import Measure
from unordinal.web.reading import RequestError, Wanted, read_json, read_request
from unordinal.web.requests import REQUESTS


@dataclass(frozen=True)
class Wish(Request):
    """Wish for something."""

    text: Annotated[str, Range(1, served=5)]
    """A text."""
    num: Annotated[int, Range(1, 9)] = 2
    """How many."""
    share: Annotated[float, Range(above=0, below=1)] = 0.5
    """A share."""
    kind: Literal["red", "blue"] | None = None
    """A colour."""
    rows: Annotated[list[list[int]] | None, Range(1, 3)] = None
    """A map."""
    known: Annotated[Any, PYTHON_ONLY] = None
    """Not for servers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num == 9 and self.kind == "red":
            raise ValueError("nine are never red")


def test_a_good_request_is_read() -> None:
    wanted, found = read_request(
        Wish, b'{"text": "abc", "num": 3.0, "kind": null, "rows": [[0, -1], [4, 1]], "model": "arm", "block": 4.0}'
    )
    assert wanted == Wanted("arm", 4)
    assert read_request(Wish, b'{"text": "a", "block": "all"}')[0] == Wanted(None, "all")
    for bad in (b"0", b"513", b'"every"', b"1.5"):
        with pytest.raises(RequestError, match="`block` must be a whole number between 1 and 512 or all, got"):
            read_request(Wish, b'{"text": "a", "block": ' + bad + b"}")
    assert found == Wish("abc", 3, 0.5, None, [[0, -1], [4, 1]])
    assert isinstance(found.num, int)
    assert read_request(Wish, b'{"text": "a", "model": null}') == (Wanted(), Wish("a"))


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b"[1]", 400, "expected a JSON object, got a list"),
        (b"3", 400, "expected a JSON object, got 3"),
        (b'{"text": "\xff"}', 400, "not UTF-8: byte 0xff at 10"),
        (b'{"text": "a", "num": NaN}', 400, "NaN is not allowed in JSON"),
        (b'{"text": "a", "num": 1' + b"0" * 5000 + b"}", 400, "too many digits"),
        (b'{"text": "a", "text": "b"}', 400, "given twice"),
        (b"{}", 422, "the field `text` is missing"),
        (b'{"text": null}', 422, "`text` must be a text"),
        (b'{"text": ""}', 422, "a length between 1 and 5, got ''"),
        (b'{"text": "abcdef"}', 422, "a length between 1 and 5, got 'abcdef'"),
        (b'{"text": "\\ud800"}', 422, "surrogate"),
        (b'{"txt": "a"}', 422, "unknown field 'txt'; did you mean text?"),
        (b'{"text": "a", "known": 1}', 422, "unknown field 'known'"),
        (b'{"text": "a", "progress": 1}', 422, "unknown field 'progress'"),
        (b'{"text": "a", "num": -1}', 422, "`num` must be a whole number between 1 and 9, got -1"),
        (b'{"text": "a", "num": 1.5}', 422, "got 1.5"),
        (b'{"text": "a", "num": true}', 422, "got True"),
        (b'{"text": "a", "num": 1' + b"0" * 60 + b"}", 422, "got a huge number"),
        (b'{"text": "a", "num": "3"}', 422, "got '3'"),
        (b'{"text": "a", "num": [[]]}', 422, "got a list"),
        (b'{"text": "a", "share": 1}', 422, "above 0 and below 1, got 1"),
        (b'{"text": "a", "share": 1e999}', 422, "above 0 and below 1"),
        (b'{"text": "a", "share": 1' + b"0" * 400 + b"}", 422, "above 0 and below 1"),
        (b'{"text": "a", "kind": "green"}', 422, "one of red, blue, got 'green'"),
        (b'{"text": "a", "rows": [[1], [1, 2]]}', 422, "rows of whole numbers of equal length"),
        (b'{"text": "a", "rows": [[1], 2]}', 422, "rows of whole numbers of equal length"),
        (b'{"text": "a", "rows": [[1], [1], [1], [1]]}', 422, "rows of whole numbers"),
        (b'{"text": "a", "model": 5}', 422, "`model` must be a text"),
        (b'{"text": "a", "model": "' + b"m" * 201 + b'"}', 422, "`model` must be a text"),
        (b'{"text": "a", "num": 9, "kind": "red"}', 422, "nine are never red"),
    ],
)
def test_a_bad_request_is_refused_by_name(body: bytes, status: int, part: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_request(Wish, body)
    assert caught.value.status == status
    assert part in caught.value.message
    assert len(caught.value.message) < 200
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("value", [5, 0.5, True, [], ["a"], [[0]], {}, {"a": 1}])
def test_what_python_takes_besides_text_is_not_served(value: Any) -> None:
    """In Python, lines and maps may be arrays too; a JSON body has what the OpenAPI file says."""
    with pytest.raises(RequestError, match="`text` must be a text") as caught:
        read_request(Measure, json.dumps({"text": value}).encode())
    assert caught.value.status == 422
    if value != [[0]]:
        with pytest.raises(RequestError, match="`map` must be rows of whole numbers") as caught:
            read_request(FillMap, json.dumps({"map": value}).encode())
        assert caught.value.status == 422


@pytest.mark.parametrize("path", REQUESTS)
def test_huge_numbers_in_any_field_are_refused(path: str) -> None:
    kind, _ = REQUESTS[path]
    for name in ("num", "seed", "temperature", "top_p", "error_rate", "threshold", "beam", "steps"):
        body = f'{{"{name}": 1{"0" * 400}}}'.encode()
        with pytest.raises(RequestError) as caught:
            read_request(kind, body)
        assert caught.value.status == 422


def test_json_is_read_once() -> None:
    assert read_json(b'{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}


def test_labels_are_a_list_of_texts() -> None:
    assert read_request(Sample, b'{"label": ["class=frog", "colour=green"]}')[1].label == ("class=frog", "colour=green")
    with pytest.raises(RequestError, match="`label` must be a text"):
        read_request(Sample, b'{"label": [3]}')
