"""What a report is made from, as JSON and back."""

import json

import pytest

from unordinal.reproduce.jobs import Asked, parsed_data
from unordinal.reproduce.outcome import Outcome, differing, made_with

MADE = {"date": "2026-01-02", "version": "0.2.0", "commit": "abc", "machine": {"cores": 2, "torch": "2.13.0"}}
ASKED = Asked(("cartesian",), rows=("text8-*",), data=parsed_data((), "tiny"))


def test_an_outcome_survives_json() -> None:
    whole = Outcome(ASKED, {"text8-arm": {"scores": {}, **MADE}}, {"other": "failed"})
    assert Outcome.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole


def test_what_differs_from_the_paper_is_told() -> None:
    text = differing(Outcome(ASKED, {}, {}))
    assert "Here models have size tiny and 5 minutes on 1 thread each; text8 is docs." in text


def test_the_makers_of_results_are_told_once() -> None:
    results = {name: dict(MADE) for name in "abc"}
    assert made_with(Outcome(ASKED, results, {})) == "2026-01-02, unordinal 0.2.0, commit abc, 2 cores, torch 2.13.0"
    assert made_with(Outcome(ASKED, {}, {})) == "nothing was run"


def test_something_else_is_refused() -> None:
    with pytest.raises(ValueError, match=r"expected the results\.json"):
        Outcome.from_dict({"a": 1})
