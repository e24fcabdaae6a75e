"""Fields are declared once: their types, ranges, defaults and documentation."""

import inspect
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from unordinal.settings import (
    NOT_SERVED,
    PYTHON_ONLY,
    Checked,
    Range,
    Request,
    is_grid,
    method,
    served,
    settings_of,
    shown,
)


@dataclass(frozen=True)
class Wish(Request):
    """Wish for something."""

    text: Annotated[str, Range(1, served=5)]
    """A text."""
    num: Annotated[int, Range(1, 9)] = 2
    """How many."""
    share: Annotated[float, Range(above=0, below=1)] = 0.5
    """A share,
    on two lines."""
    kind: Literal["red", "blue"] | None = None
    """A colour."""
    steps: Annotated[int | Literal["all"] | None, Range(1, served=10)] = None
    """Steps."""
    rows: Annotated[list[list[int]] | None, Range(1, 3)] = None
    """A map."""
    sizes: Annotated[tuple[int, ...], Range(1)] = (1, 2)
    """Sizes."""
    secret: Annotated[Any, PYTHON_ONLY] = None
    """Anything."""
    batch: Annotated[int, Range(1), NOT_SERVED] = 32
    """Not for servers."""
    is_on: bool = field(default=False, kw_only=True)
    """A switch."""


def test_the_documentation_is_below_a_field() -> None:
    texts = {name: setting.text for name, setting in settings_of(Wish).items()}
    assert texts["text"] == "A text."
    assert texts["num"] == "How many."
    assert texts["share"] == "A share, on two lines."
    assert texts["progress"].startswith("A `Progress`")  # of the base
    assert settings_of(Wish)["num"].default == 2


def test_good_values_are_taken() -> None:
    wish = Wish("abc", 3, 0.25, "red", "all", [[0, -1], [4, 1]], (3,), secret=object(), is_on=True)
    assert (wish.num, wish.share, wish.kind, wish.steps) == (3, 0.25, "red", "all")
    assert Wish("a" * 1000).text == "a" * 1000  # only a server has the limit
    assert Wish("a", steps=10**6).steps == 10**6
    assert Wish("a", share=0.5) == Wish("a", progress=print)  # what receives the progress is no part of a wish
    with pytest.raises(AttributeError):
        wish.num = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"text": ""}, "`text` must be a text with a length of at least 1, got ''"),
        ({"text": 5}, "`text` must be a text with a length of at least 1, got 5"),
        ({"text": None}, "`text` must be a text .*, got None"),
        ({"num": 0}, "`num` must be a whole number between 1 and 9, got 0"),
        ({"num": 10}, "`num` must be a whole number between 1 and 9, got 10"),
        ({"num": 1.5}, "`num` must be a whole number between 1 and 9, got 1.5"),
        ({"num": True}, "`num` must be a whole number between 1 and 9, got True"),
        ({"num": "3"}, "`num` must be a whole number between 1 and 9, got '3'"),
        ({"num": None}, "got None"),
        ({"num": 10**60}, "got a huge number"),
        ({"share": 0}, "`share` must be a number above 0 and below 1, got 0"),
        ({"share": 1.0}, "`share` must be a number above 0 and below 1, got 1"),
        ({"share": math.nan}, "got nan"),
        ({"share": math.inf}, "got inf"),
        ({"share": 10**400}, "`share` must be a number above 0 and below 1, got a huge number"),
        ({"kind": "green"}, "`kind` must be one of red, blue, got 'green'"),
        ({"steps": "al"}, "`steps` must be a whole number of at least 1 or all, got 'al'"),
        ({"rows": [[1], [1, 2]]}, "`rows` must be rows of whole numbers of equal length, got a list"),
        ({"rows": [[1, 2, 3, 4]]}, "`rows` must be rows of whole numbers"),
        ({"sizes": (1, 0)}, "`sizes` must be a whole number of at least 1"),
        ({"sizes": 3}, "`sizes` must be"),
        ({"is_on": 1}, "`is_on` must be true or false, got 1"),
    ],
)
def test_bad_values_are_refused_by_name_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        Wish(**{"text": "a", **values})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


def test_a_server_has_limits_of_its_own() -> None:
    known = settings_of(Wish)
    assert known["text"].accepts("abcdef")
    assert not known["text"].accepts("abcdef", served=True)
    assert known["steps"].accepts(11)
    assert not known["steps"].accepts(11, served=True)
    assert known["steps"].accepts("all", served=True)
    with pytest.raises(ValueError, match="between 1 and 5, got 'abcdef'"):
        known["text"].check("abcdef", served=True)
    assert {setting.name for setting in served(Wish)} == {
        *("text", "num", "share", "kind", "steps", "rows", "sizes", "is_on")
    }


def test_ranges_in_words() -> None:
    assert str(Range()) == ""
    assert str(Range(1)) == "of at least 1"
    assert str(Range(1, 9)) == "between 1 and 9"
    assert str(Range(above=0, below=1)) == "above 0 and below 1"
    assert str(Range(above=0, high=1)) == "above 0 and of at most 1"
    assert str(Range(1, served=5).limited()) == "between 1 and 5"
    assert Range(0, below=1).holds(0)
    assert not Range(0, below=1).holds(1)
    assert not Range(0).holds(math.nan)


def test_values_are_shown_short() -> None:
    assert shown("a" * 1000).endswith("...")
    assert len(shown("a" * 1000)) < 50
    assert shown([1] * 1000) == "a list"
    assert shown({"a": 1}) == "an object"
    assert shown(10**30) == "a huge number"
    assert shown(0.25) == "0.25"


def test_grids() -> None:
    assert is_grid([[1, 2], [3, -1]])
    wrongs: list[Any] = [[], [[]], [[1], [1, 2]], [[1.0]], [[True]], [1], "ab", None, ((1,),)]
    assert not any(is_grid(wrong) for wrong in wrongs)


def test_a_checked_dataclass_of_ones_own() -> None:
    @dataclass(frozen=True)
    class Size(Checked):
        width: Annotated[int, Range(1)] = 4

    assert Size().width == 4
    with pytest.raises(ValueError, match="`width` must be a whole number of at least 1, got 0"):
        Size(0)


class Asked:
    """Something with a method made of a request."""

    wish = method(Wish, lambda asked, wish: (asked, wish))


def test_a_method_takes_the_fields_of_a_request() -> None:
    asked = Asked()
    found, wish = asked.wish("abc", 4, is_on=True)
    assert found is asked
    assert wish == Wish("abc", 4, is_on=True)
    signature = inspect.signature(Asked.wish)
    assert list(signature.parameters)[:3] == ["self", "text", "num"]
    assert signature.parameters["num"].default == 2
    assert signature.parameters["text"].default is inspect.Parameter.empty
    assert signature.parameters["is_on"].kind is inspect.Parameter.KEYWORD_ONLY
    assert "A share, on two lines." in (inspect.getdoc(Asked.wish) or "")
    for call in (asked.wish, lambda: asked.wish("a", nmu=3), lambda: asked.wish("a", text="b")):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="`num` must be"):
        asked.wish("a", 0)
