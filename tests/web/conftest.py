"""A real server in a process of its own, with small runs, and another with the models that come with the package."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The one sentence of a refusal."""
        assert self.headers["content-type"] == "application/json", self.body
        assert set(self.json) == {"error"}, self.body
        assert "Traceback" not in self.json["error"]
        return self.json["error"]


@dataclass(frozen=True)
class Server:
    port: int
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def ask(
        self,
        path: str,
        body: Any = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
        method: str | None = None,
    ) -> Answer:
        """Send a request: a POST of JSON if there is a body, else a GET."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        data = raw if body is None else json.dumps(body).encode()
        kind = {"content-type": "application/json"} if data is not None else {}
        try:
            connection.request(method or ("GET" if data is None else "POST"), path, data, {**kind, **(headers or {})})
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def api(self, path: str, body: Any = None, **settings: Any) -> Answer:
        return self.ask(f"/api/v1/{path}", body, **settings)

    def connect(self) -> socket.socket:
        """Open a bare connection."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    @property
    def megabytes(self) -> float:
        """The memory that the server holds now."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


@contextmanager
def running(log: Path, *words: object) -> Iterator[Server]:
    """Start `unordinal serve` and stop it in the end."""
    port = free_port()
    command = [sys.executable, "-m", "unordinal", "serve", *map(str, words), "--port", str(port)]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file)
    server = Server(port, process, log)
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                assert server.ask("/healthz").status == 200
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="session")
def small_server(
    arms: dict[str, Path], diffusions: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """A server with small runs: texts of an autoregressive model and of two diffusions, and maps."""
    paths = [diffusions["uniform"], diffusions["absorbing"], arms["arm"], diffusions["maps"]]
    with running(tmp_path_factory.mktemp("served") / "log", *paths) as server:
        yield server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the models that come with the package."""
    with running(tmp_path_factory.mktemp("served") / "log") as found:
        yield found


@pytest.fixture
def run_server() -> Any:
    """Start a server of the test's own."""
    return running
