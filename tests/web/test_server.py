"""Abuse of a real server: every answer is a 4xx with one sentence, and the server keeps answering."""

import json
import signal
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

LONG = {"model": "uniform", "steps": 1000, "length": 512, "num": 16}


def post(path: str, body: bytes, *extra: str) -> bytes:
    """A request as it goes over the wire."""
    head = [f"POST /api/v1/{path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *extra]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", ""]).encode() + body


def is_free(server: Any, seconds: float = 10.0) -> bool:
    """Whether the server has no work left after a while."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.ask("/healthz").json["jobs"] == 0:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("raw", "headers", "status", "part"),
    [
        (b"x" * 10_000_000, {}, 413, "at most 262,144 bytes"),
        (b"{", {}, 400, "not JSON"),
        (b"[" * 100_000 + b"]" * 100_000, {}, 400, "nested too deeply"),
        (b"{}", {"content-type": "text/plain"}, 415, "application/json"),
        (b"{}", {"content-type": "multipart/form-data; boundary=x"}, 415, "application/json"),
        (b'{"text": "a", "colour": 1}', {}, 422, "unknown field 'colour'"),
        (b'{"text": "a", "beam": -1}', {}, 422, "between 1 and 64, got -1"),
        (b'{"text": "a", "beam": 1e300}', {}, 422, "between 1 and 64"),
        (b'{"text": "a", "beam": 1' + b"0" * 9999 + b"}", {}, 400, "too many digits"),
        (b'{"text": "a", "error_rate": NaN}', {}, 400, "NaN"),
        (b'{"text": "a", "error_rate": 0}', {}, 422, "above 0"),
        (b'{"text": "\xff\xfe"}', {}, 400, "not UTF-8"),
        (b'{"text": "' + b"a" * 10_001 + b'"}', {}, 422, "a length between 1 and 10000, got"),
        (b'{"text": "a"}', {"host": "evil.example"}, 421, "host name is not allowed"),
        (b'{"text": "a"}', {"origin": "http://evil.example"}, 403, "other sites"),
        (b'{"text": "a"}', {"sec-fetch-site": "cross-site"}, 403, "other sites"),
    ],
)
def test_bad_requests_are_refused(
    small_server: Any, raw: bytes, headers: dict[str, str], status: int, part: str
) -> None:
    try:
        answer = small_server.api("correct", raw=raw, headers=headers)
    except (BrokenPipeError, ConnectionResetError):  # the server answered and closed before all of it was sent
        assert len(raw) > 1_000_000
    else:
        assert answer.status == status
        assert part in answer.error
    assert small_server.ask("/healthz").status == 200


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/static/../app.py", "/%2e%2e/%2e%2e/etc/passwd", "/page.js/..", "//etc/passwd"]
)
def test_no_path_leads_out_of_the_page(small_server: Any, path: str) -> None:
    with small_server.connect() as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
        answer = connection.makefile("rb").read()
    assert answer.split(b" ")[1] == b"404"
    assert b"root:" not in answer


def test_what_is_not_http_is_refused(small_server: Any) -> None:
    for sent in (b"\x16\x03\x01\x02\x00" * 40, b"GET / HTTP/9.9\r\n\r\n", b"A" * 100_000):
        with small_server.connect() as connection:
            connection.sendall(sent)
            connection.settimeout(15)
            try:
                answer = connection.makefile("rb").read()
            except ConnectionResetError:
                answer = b""
        assert answer == b"" or answer.split(b" ")[1].startswith(b"4")
    assert small_server.ask("/healthz").status == 200


def test_slow_senders_are_cut_off_and_do_not_hold_up_others(small_server: Any) -> None:
    heads = [small_server.connect() for _ in range(20)]
    bodies = [small_server.connect() for _ in range(20)]
    for connection in heads:
        connection.sendall(b"POST /api/v1/bits HTTP/1.1\r\nHost: 127")
    for connection in bodies:
        connection.sendall(post("bits", b"{}").replace(b"Content-Length: 2", b"Content-Length: 200"))
    began = time.monotonic()
    assert small_server.api("bits", {"text": "the fox"}).status == 200
    assert time.monotonic() - began < 5
    for connection in bodies:
        assert b" 408 " in connection.makefile("rb").readline()
    for connection in heads:
        assert connection.recv(1000) == b""
    for connection in (*heads, *bodies):
        connection.close()


def test_a_second_head_and_a_body_that_nobody_reads_are_cut_off_too(small_server: Any) -> None:
    """Neither a request that never becomes whole nor a refused one keeps its connection."""
    with socket.create_connection(("127.0.0.1", small_server.port), timeout=40) as client:
        client.sendall(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{small_server.port}\r\n\r\n".encode())
        assert b"200 OK" in client.recv(10_000)
        client.sendall(b"G")
        while client.recv(10_000):
            pass  # the server closes the connection, or this times out
    with socket.create_connection(("127.0.0.1", small_server.port), timeout=40) as client:
        client.sendall(b"POST /api/v1/bits HTTP/1.1\r\nHost: evil.example\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
        answer = b""
        while part := client.recv(10_000):
            answer += part
        assert b" 421 " in answer
        assert b"connection: close" in answer.lower()


def test_two_hundred_requests_at_once(small_server: Any) -> None:
    statuses: Counter[int] = Counter()
    times: list[float] = []

    def ask() -> None:
        began = time.monotonic()
        answer = small_server.api("sample", {"model": "uniform", "steps": 40, "length": 64, "num": 4})
        statuses[answer.status] += 1
        times.append(time.monotonic() - began)
        if answer.status == 429:
            assert "busy with 36 requests, which is its limit" in answer.error
            assert answer.headers["retry-after"] == "5"

    threads = [threading.Thread(target=ask) for _ in range(200)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {200, 429}, statuses
    assert statuses.total() == 200
    assert statuses[200] >= 36
    assert is_free(small_server)


def test_a_client_that_leaves_frees_its_place(small_server: Any) -> None:
    for path in ("sample", "sample/stream"):
        asked = {**LONG, "num": 1} if path.endswith("stream") else LONG
        for _ in range(4):
            with small_server.connect() as connection:
                connection.sendall(post(path, json.dumps(asked).encode()))
                time.sleep(0.1)
        assert is_free(small_server, 5), path


def test_a_thousand_streams_opened_and_dropped(small_server: Any) -> None:
    body = post("sample/stream", json.dumps({**LONG, "num": 1}).encode())

    def drop(num: int) -> None:
        for _ in range(num):
            with small_server.connect() as connection:
                connection.sendall(body)
                connection.recv(100)

    drop(100)
    before = small_server.megabytes
    threads = [threading.Thread(target=drop, args=(90,)) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_free(small_server)
    assert small_server.megabytes < before + 100
    assert small_server.api("bits", {"text": "the fox"}).status == 200


def test_a_slow_request_does_not_hold_up_a_quick_one(small_server: Any) -> None:
    with small_server.connect() as connection:
        connection.sendall(post("sample", json.dumps(LONG).encode()))
        time.sleep(0.2)
        began = time.monotonic()
        assert small_server.api("bits", {"text": "the fox"}).status == 200
        assert time.monotonic() - began < 3
    assert is_free(small_server)


def test_the_log_has_no_texts(small_server: Any) -> None:
    small_server.api("bits", {"text": "my secret diary"})
    log = small_server.log.read_text()
    assert "POST /api/v1/bits 200" in log
    assert "secret" not in log
    assert "Traceback" not in log


def test_sigterm_lets_a_request_end_and_then_stops(arms: dict[str, Path], tmp_path: Path, run_server: Any) -> None:
    with run_server(tmp_path / "log", arms["arm"]) as server:
        found: list[int] = []
        asking = threading.Thread(target=lambda: found.append(server.api("sample", {"length": 300, "num": 4}).status))
        asking.start()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        asking.join(30)
        assert found == [200]
        assert server.process.wait(15) == 0
        assert "Stopped." in (tmp_path / "log").read_text()
