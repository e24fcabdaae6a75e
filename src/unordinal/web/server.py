"""The server itself: one process, which loads its models once and stops gracefully."""

import asyncio
import signal
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from unordinal.web.guard import App

HEADER_SECONDS = 10.0  # how long the head of a request may take to arrive
GRACE_SECONDS = 10  # for requests that are being answered when the server is to stop
MOST_CONNECTIONS = 1000


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed if the head of its first request does not arrive in time."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.late = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.close_if_late)

    def close_if_late(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.late.cancel()
        super().connection_lost(exc)


def serve(app: App, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; requests that are being answered then have some seconds to end."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=TimedProtocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = uvicorn.Server(config)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run()  # takes the signals over, and raises them once more when it is done
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if not server.started:
        raise OSError(f"cannot listen on {host}:{port}; is the port in use? `port` takes another")
