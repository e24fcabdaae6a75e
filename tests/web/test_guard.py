"""What every request passes first, on an application that answers everything."""

import asyncio
from typing import Any

import pytest

from unordinal.web.guard import Guard, name_of


async def fine(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive()).get("body", b"")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def broken(scope: Any, receive: Any, send: Any) -> None:
    raise RuntimeError("secret text")


def asked(
    headers: dict[str, str], parts: tuple[bytes, ...] = (), app: Any = fine, path: str = "/api/v1/x", hosts: Any = None
) -> tuple[int, dict[str, str], bytes, list[str]]:
    sent: list[Any] = []
    log: list[str] = []
    messages = [{"type": "http.request", "body": part, "more_body": i < len(parts) - 1} for i, part in enumerate(parts)]

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        await asyncio.sleep(10)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    scope = {"type": "http", "path": path, "method": "POST", "headers": pairs}
    names = frozenset({"localhost", "127.0.0.1"}) if hosts is None else hosts
    guard = Guard(app, hosts=names, most_bytes=100, seconds=0.05, log=log.append)
    asyncio.run(guard(scope, receive, send))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(m.get("body", b"") for m in sent[1:]), log


def test_a_good_request_passes_with_its_body_and_safe_headers() -> None:
    headers = {"host": "localhost:8000", "origin": "http://localhost:8000", "content-length": "4"}
    status, found, body, log = asked(headers, (b"ab", b"cd"))
    assert (status, body) == (200, b"abcd")
    assert found["content-security-policy"].startswith("default-src 'none'")
    assert found["x-content-type-options"] == "nosniff"
    assert log[0].startswith("POST /api/v1/x 200 ")


@pytest.mark.parametrize(
    ("headers", "parts", "status", "part"),
    [
        ({"host": "evil.example"}, (b"",), 421, "host name is not allowed"),
        ({}, (b"",), 421, "host name is not allowed"),
        ({"host": "localhost.evil.example"}, (b"",), 421, "host name is not allowed"),
        ({"host": "localhost", "origin": "http://evil.example"}, (b"",), 403, "other sites"),
        ({"host": "localhost:80", "origin": "http://localhost:81"}, (b"",), 403, "other sites"),
        ({"host": "localhost", "origin": "null"}, (b"",), 403, "other sites"),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, (b"",), 403, "other sites"),
        ({"host": "localhost", "content-length": "101"}, (b"",), 413, "at most 100 bytes, got 101"),
        ({"host": "localhost", "content-length": "-1"}, (b"",), 400, "content-length"),
        ({"host": "localhost", "transfer-encoding": "chunked"}, (b"a" * 60, b"b" * 60), 413, "at most 100 bytes"),
        ({"host": "localhost", "content-length": "4"}, (), 408, "within 0.05 seconds"),
    ],
)
def test_others_are_refused(headers: dict[str, str], parts: tuple[bytes, ...], status: int, part: str) -> None:
    found, _, body, _ = asked(headers, parts)
    assert found == status
    assert part in body.decode()


def test_an_internal_error_shows_nothing_of_itself() -> None:
    status, _, body, log = asked({"host": "localhost"}, (b"",), broken)
    assert status == 500
    assert b"secret" not in body
    assert log[0] == "internal error: RuntimeError"


def test_the_log_has_no_unprintable_path() -> None:
    assert asked({"host": "localhost"}, (b"",), path="/a\nb")[3][0].startswith("POST (unprintable) 200")


@pytest.mark.parametrize("host", ["localhost:1@evil.example", "localhost:[", "[::1", "localhost:99999999", "", "a b"])
def test_a_host_that_no_browser_sends_is_no_host(host: str) -> None:
    assert name_of(host) == ""
