"""The API answers what the command line prints, for the same seed; and requests made up from the OpenAPI file."""

import json
import time
from typing import Any

import pytest
from conftest import Cli
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

PARITY = [
    ("sample", {"model": "pretrained:text8-arm", "num": 2, "length": 24, "temperature": 0.8, "prompt": "the "},
     ["sample", "pretrained:text8-arm", "--num", 2, "--length", 24, "--temperature", 0.8, "--prompt", "the "],
     ["samples", "network_calls"]),
    ("sample", {"model": "pretrained:english-absorbing", "num": 1, "length": 20, "steps": 10, "seed": 7},
     ["sample", "pretrained:english-absorbing", "--num", 1, "--length", 20, "--steps", 10, "--seed", 7],
     ["samples", "network_calls", "steps", "seed"]),
    ("sample", {"model": "pretrained:text8-uniform", "num": 1, "length": 20, "sampler": "corrected", "steps": 8},
     ["sample", "pretrained:text8-uniform", "--num", 1, "--length", 20, "--steps", 8, "--sampler", "corrected"],
     ["samples", "network_calls"]),
    ("correct", {"text": "The populatiom of Paris", "error_rate": 0.05},
     ["correct", "The populatiom of Paris", "--error-rate", 0.05], ["text", "suggestions"]),
    ("correct", {"text": "the united ststes", "method": "beam", "beam": 8},
     ["correct", "the united ststes", "--method", "beam", "--beam", 8], ["text", "suggestions"]),
    ("fill", {"text": "the ___ of the city", "num": 3, "seed": 2},
     ["fill", "the ___ of the city", "--num", 3, "--seed", 2], ["kind", "proposals", "seed"]),
    ("bits", {"text": "the cat sat\non teh mat"},
     ["bits", "--text", "the cat sat\non teh mat", "--positions"], ["unit"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "body", "words", "keys"), PARITY)
def test_the_api_answers_what_the_command_line_prints(
    server: Any, cli: Cli, path: str, body: dict[str, Any], words: list[Any], keys: list[str]
) -> None:
    answer = server.api(path, body)
    assert answer.status == 200, answer.body
    printed = cli(*words, "--json").json
    for key in keys:
        assert close(answer.json[key], printed[key]), key
    if path == "bits":
        for ours, theirs in zip(answer.json["lines"], printed["lines"], strict=True):
            assert all(close(ours[key], theirs[key]) for key in ("line", "text", "bits", "positions"))


def close(a: Any, b: Any) -> bool:
    """Equal, but for the last digits of numbers: sums of another number of threads differ there."""
    if isinstance(a, float) and isinstance(b, float):
        return a == pytest.approx(b, rel=1e-4, abs=1e-5)
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    return bool(a == b)


def test_the_stream_ends_with_the_sample_of_the_plain_request(small_server: Any) -> None:
    body = {"model": "absorbing", "num": 1, "length": 16, "steps": 8, "seed": 4}
    events = small_server.api("sample/stream", body).body.decode().strip().split("\n\n")
    names = [event.splitlines()[0].removeprefix("event: ") for event in events]
    assert names == ["waiting", *["frame"] * 9, "done"]
    done = json.loads(events[-1].splitlines()[1].removeprefix("data: "))
    assert done["sample"] == small_server.api("sample", body).json["samples"][0]


def test_a_model_that_can_do_what_is_asked_is_chosen_whatever_comes_first(server: Any) -> None:
    assert server.api("models").json["models"][0]["name"] == "pretrained:text8-arm"
    assert b"event: done" in server.api("sample/stream", {"length": 8, "steps": 4}).body


def test_an_error_in_a_stream_is_its_last_event(small_server: Any) -> None:
    body = small_server.api("sample/stream", {"model": "absorbing", "length": 4, "steps": 100}).body.decode()
    assert body.strip().splitlines()[-2] == "event: error"
    assert "between 1 and 4" in body


def test_fixed_pages_and_their_errors(small_server: Any) -> None:
    for path in (
        "/",
        "/style.css",
        "/page.js",
        "/parts.js",
        "/player.js",
        "/panels/maps.js",
        "/icon.svg",
        "/docs",
        "/docs.js",
        "/healthz",
    ):
        answer = small_server.ask(path)
        assert answer.status == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert small_server.ask("/nothing").status == 404
    assert "nothing at /nothing" in small_server.ask("/nothing").error
    assert "GET is not allowed" in small_server.ask("/api/v1/correct").error
    assert small_server.ask("/", method="DELETE").status == 405
    assert small_server.api("limits").json["waiting"] == 32
    assert small_server.api("openapi.json").json["openapi"] == "3.1.0"


# Requests made up from the OpenAPI file: what it allows, what it nearly allows, and what it does not.
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def allowed(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows, kept small so that answers are quick."""
    if "anyOf" in schema:
        return st.one_of([allowed(part) for part in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    options: list[st.SearchStrategy[Any]] = []
    for kind in kinds:
        if kind == "string":
            letters = st.text(
                st.characters(codec="utf-8"), min_size=schema.get("minLength", 0), max_size=min(40, schema["maxLength"])
            )
            options += [letters, st.sampled_from(["the quick fox", "a _ b", "arm", "maps", "uniform", "absorbing"])]
        elif kind == "integer":
            options.append(st.integers(schema["minimum"], min(schema["maximum"], schema["minimum"] + 8)))
        elif kind == "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum"))
            high = schema.get("maximum", schema.get("exclusiveMaximum"))
            exclude_min, exclude_max = "exclusiveMinimum" in schema, "exclusiveMaximum" in schema
            options.append(st.floats(low, high, exclude_min=exclude_min, exclude_max=exclude_max))
        elif kind == "array":
            row = st.lists(st.integers(-1, 9), min_size=16, max_size=16)
            options.append(st.lists(row, min_size=8, max_size=8))
        elif kind == "boolean":
            options.append(st.booleans())
        elif kind == "null":
            options.append(st.none())
    return st.one_of(options)


RARE = ("block", "budget")  # fields that few models take, so that most requests are still answered


@st.composite
def requests(draw: st.DrawFn, spec: dict[str, Any]) -> tuple[str, dict[str, Any], bool]:
    """A path, a body, and whether the file allows the body."""
    path = draw(st.sampled_from(sorted(path for path, methods in spec["paths"].items() if "post" in methods)))
    reference = spec["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    schema = spec["components"]["schemas"][reference.rpartition("/")[2]]
    required = set(schema.get("required", []))
    body = {
        name: draw(allowed(part))
        for name, part in schema["properties"].items()
        if name in required or draw(st.integers(0, 9) if name in RARE else st.integers(0, 1)) == 0
    }
    is_allowed = draw(st.integers(0, 3)) > 0
    if not is_allowed:
        body[draw(st.sampled_from(sorted(schema["properties"])) | st.text(max_size=8))] = draw(ANYTHING)
    return path, body, is_allowed


@pytest.mark.timeout(900)
@pytest.mark.parametrize("num", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_requests_from_the_openapi_file(small_server: Any, num: int) -> None:
    spec = small_server.api("openapi.json").json
    statuses: dict[int, int] = {}

    @settings(max_examples=num, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(requests(spec))
    def check(asked: tuple[str, dict[str, Any], bool]) -> None:
        path, body, _ = asked
        answer = small_server.ask(path, raw=json.dumps(body).encode())
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
        assert answer.status in (200, 400, 422), (path, body, answer.body)
        if answer.status != 200:
            assert answer.error
            assert "\n" not in answer.error

    check()
    assert sum(statuses.values()) >= num
    assert statuses[200] > num / 20, statuses
    until = time.monotonic() + 10  # a job may be counted for a moment after its answer
    while small_server.ask("/healthz").json["jobs"] and time.monotonic() < until:
        time.sleep(0.05)
    assert small_server.ask("/healthz").json["jobs"] == 0
    assert "internal error" not in small_server.log.read_text()
