"""What can be asked of the server, and what is said of it."""

from typing import Any

from unordinal.settings import Request, served, settings_of
from unordinal.web.requests import REQUESTS


def test_every_request_has_a_place_and_every_field_a_meaning() -> None:
    for path, (kind, answer) in REQUESTS.items():
        assert issubclass(kind, Request)
        assert answer.endswith("."), path
        assert (kind.__doc__ or "").strip().endswith(".")
        declared: Any = kind
        for name, setting in settings_of(declared).items():
            assert setting.text.endswith("."), (kind.__name__, name)


def test_defaults_keep_their_own_rules() -> None:
    for kind, _ in REQUESTS.values():
        for setting in served(kind):
            if isinstance(setting.default, int | float | str):
                assert setting.accepts(setting.default, served=True), setting.name


def test_every_number_that_is_served_has_a_limit() -> None:
    """Nobody can ask for endless work by one large number."""
    for kind, _ in REQUESTS.values():
        for setting in served(kind):
            if {int, float, str} & set(setting.types):
                limits = setting.range(served=True)
                assert limits.high is not None or limits.below is not None, (kind.__name__, setting.name)
