"""Check every request first: its host, its origin, its size and how slowly it arrives."""

import asyncio
import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from unordinal.web.reading import RequestError

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
Log = Callable[[str], None]

HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:[0-9]{1,5})?")
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class Guard:
    """Passes requests on to an application, or answers them with a 4xx and one sentence.

    Args:
        app: the application.
        hosts: the names by which this server may be called, without ports: a page elsewhere that points a name of its
            own here (DNS rebinding) is refused. None lets every name through.
        most_bytes: the largest body.
        seconds: how long a body may take to arrive.
        log: receives one line for each request: method, path, status and milliseconds, but not its content.
    """

    def __init__(self, app: App, *, hosts: frozenset[str] | None, most_bytes: int, seconds: float, log: Log):
        self.app = app
        self.hosts = hosts
        self.most_bytes = most_bytes
        self.seconds = seconds
        self.log = log

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing else is served
            return
        began, status, is_read = time.monotonic(), 0, False

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
            await send(message)

        try:
            headers = headers_of(scope)
            self.check(scope, headers)
            receive = await self.with_body(headers, receive)
            is_read = True
            await self.app(scope, receive, sending)
        except RequestError as error:
            if not status:
                await refuse(sending, error, closes=not is_read)
        except ConnectionError:  # the client has gone
            status = status or 499
        except Exception as error:
            self.log(f"internal error: {type(error).__name__}")
            if not status:
                await refuse(
                    sending, RequestError(500, "internal error; the server's log has its kind"), closes=not is_read
                )
        milliseconds = 1000 * (time.monotonic() - began)
        path = scope["path"] if scope["path"].isprintable() else "(unprintable)"
        self.log(f"{scope['method'][:20]} {path[:80]} {status} {milliseconds:.0f} ms")

    def check(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> None:
        """Raise a RequestError for requests to another host, or from a page of another site."""
        host = headers.get("host", "")
        if self.hosts is not None and name_of(host) not in self.hosts:
            raise RequestError(421, "this host name is not allowed; open the address that `unordinal serve` printed")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise RequestError(403, "requests from pages of other sites are refused")
        if headers.get("sec-fetch-site") == "cross-site" and scope["path"].startswith("/api/"):
            raise RequestError(403, "requests from pages of other sites are refused")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise RequestError(400, "the content-length must be a number")
        if int(length) > self.most_bytes:
            raise RequestError(413, f"the body may have at most {self.most_bytes:,} bytes, got {int(length):,}")

    async def with_body(self, headers: dict[str, str], receive: Receive) -> Receive:
        """Read the whole body, within its limits, and return a function that gives it to the application."""
        if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
            return receive
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ConnectionResetError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.most_bytes:
                        raise RequestError(413, f"the body may have at most {self.most_bytes:,} bytes")
                    if not message.get("more_body", False):
                        break
        except TimeoutError as error:
            raise RequestError(408, f"the body did not arrive within {self.seconds:g} seconds") from error
        whole: list[Message] = [{"type": "http.request", "body": b"".join(parts), "more_body": False}]

        async def give() -> Message:
            return whole.pop() if whole else await receive()

        return give


def headers_of(scope: MutableMapping[str, Any]) -> dict[str, str]:
    """Return the headers; one that is given twice counts by its first value, except that a host may be given once."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in found and key in ("host", "origin", "content-length"):
            raise RequestError(400, f"the header {key} is given twice")
        found.setdefault(key, value.decode("latin-1"))
    return found


def name_of(host: str) -> str:
    """Return the name in a host header, without its port; an empty text if the header is not one of a browser's.

    >>> name_of("localhost:8000"), name_of("[::1]:8000"), name_of("127.0.0.1"), name_of("localhost:1@evil.example")
    ('localhost', '::1', '127.0.0.1', '')
    """
    match = HOST.fullmatch(host.lower())
    return "" if match is None else match["name"].strip("[]")


async def refuse(send: Send, error: RequestError, *, closes: bool = False) -> None:
    """Answer with an error as JSON; close the connection if the body of the request has not been read."""
    body = json.dumps({"error": error.message}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
