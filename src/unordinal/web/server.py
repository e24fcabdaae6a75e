"""The server: one process, which loads its models once and stops gracefully."""

import asyncio
import signal
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from unordinal.web.guard import App

HEADER_SECONDS = 10.0  # how long the head of a request may take to arrive
UNREAD_SECONDS = 60.0  # how long an answer may wait for its reader
GRACE_SECONDS = 10  # for requests that are being answered when the server is to stop
MOST_CONNECTIONS = 1000


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed if the head of a request, or the reader of an answer, is too slow."""

    late: asyncio.TimerHandle | None = None  # runs out when the head of a request takes too long
    unread: asyncio.TimerHandle | None = None  # runs out when a client does not read its answer

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.expect_head()

    def expect_head(self) -> None:
        if self.late is None:
            self.late = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.close_if_late)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:  # the head of a request is whole
            self.late = stopped(self.late)
        elif self.cycle is None or self.cycle.response_complete:  # a part of the next one; it does not get more time
            self.expect_head()

    def close_if_late(self) -> None:
        self.late = None
        if (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing():
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = asyncio.get_running_loop().call_later(UNREAD_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        self.unread = stopped(self.unread)
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self.late, self.unread = stopped(self.late), stopped(self.unread)
        super().connection_lost(exc)


def stopped(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Stop a timer, if there is one, and return None."""
    if timer is not None:
        timer.cancel()
    return None


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
