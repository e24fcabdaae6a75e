"""The limits of requests are those of the tasks behind them."""

from dataclasses import fields
from typing import get_type_hints

from unordinal.web import requests


def test_every_request_has_a_place_and_every_field_a_meaning() -> None:
    for path, (kind, answer) in requests.REQUESTS.items():
        assert answer.endswith("."), path
        assert kind.__doc__.endswith(".")
        assert get_type_hints(kind).keys() == {f.name for f in fields(kind)}
        for declared in fields(kind):
            assert declared.metadata["doc"].endswith("."), declared.name


def test_defaults_keep_their_own_rules() -> None:
    for kind, _ in requests.REQUESTS.values():
        for declared in fields(kind):
            if isinstance(declared.default, int | float | str):
                assert declared.metadata["rule"].check(declared.default) is None, declared.name
