"""The server's application: the page, the API, and the queue of requests."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import unordinal
from unordinal.api import Run
from unordinal.web.answers import Answers
from unordinal.web.guard import App, Guard, Log
from unordinal.web.jobs import BusyError, Event, Job, TooLongError, Workshop
from unordinal.web.openapi import PREFIX, openapi
from unordinal.web.reading import RequestError, Wanted, read_request
from unordinal.web.requests import REQUESTS

PANELS = ("bits", "correct", "emerge", "fill", "lines", "maps", "rows")
SCRIPTS = ("page.js", "parts.js", "docs.js", *(f"panels/{name}.js" for name in PANELS))
STATIC = {
    "/": ("web/static/index.html", "text/html"),
    "/style.css": ("web/static/style.css", "text/css"),
    "/icon.svg": ("web/static/icon.svg", "image/svg+xml"),
    "/docs": ("web/static/docs.html", "text/html"),
    "/player.js": ("templates/player.js", "text/javascript"),
    **{f"/{name}": (f"web/static/{name}", "text/javascript") for name in SCRIPTS},
}


@dataclass(frozen=True)
class Limits:
    """Limits on the work that the server accepts.

    Args:
        workers: how many requests are worked on at a time.
        waiting: how many more may wait; those beyond are refused.
        job_seconds: how long one request may compute.
        body_bytes: the largest body.
        body_seconds: how long a body may take to arrive.
    """

    workers: int = 4
    waiting: int = 32
    job_seconds: float = 60.0
    body_bytes: int = 262_144
    body_seconds: float = 10.0


def make_app(
    runs: Mapping[str, Run],
    *,
    hosts: frozenset[str] | None,
    limits: Limits | None = None,
    log: Log = lambda _line: None,
) -> App:
    """Return the ASGI application.

    Args:
        runs: the models to serve, by name.
        hosts: the names by which the server may be called; None for any.
        limits: limits on the work that it accepts.
        log: receives one line for each request.
    """
    limits = limits or Limits()
    answers, workshop = Answers(runs), Workshop(limits.workers, limits.waiting, limits.job_seconds)
    works: dict[str, Callable[[Wanted, Any, Job], Any]] = {
        "sample": answers.sample,
        "sample/stream": answers.stream,
        "correct": answers.correct,
        "fill": answers.fill,
        "fill/map": answers.fill_map,
        "bits": answers.bits,
    }
    described = openapi(unordinal.__version__)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(workshop.close)

    async def health(_request: Request) -> Response:
        return JSONResponse({"status": "ok", "models": len(runs), "jobs": workshop.num_jobs})

    fixed = {
        f"{PREFIX}/models": answers.models(),
        f"{PREFIX}/limits": asdict(limits),
        f"{PREFIX}/openapi.json": described,
    }
    routes = [Route("/healthz", health)]
    routes += [Route(path, as_is(JSONResponse(value))) for path, value in fixed.items()]
    routes += [Route(path, static(*what)) for path, what in STATIC.items()]
    routes += [
        Route(
            f"{PREFIX}/{path}",
            endpoint(kind, works[path], workshop, is_stream=path.endswith("stream")),
            methods=["POST"],
        )
        for path, (kind, _) in REQUESTS.items()
    ]
    handlers = {404: not_found, 405: not_allowed, RequestError: refused, ConnectionError: gone, Exception: failed}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=handlers)
    return Guard(app, hosts=hosts, most_bytes=limits.body_bytes, seconds=limits.body_seconds, log=log)


def endpoint(kind: type, work: Callable[[Wanted, Any, Job], Any], workshop: Workshop, *, is_stream: bool) -> Any:
    """Return the function that answers requests of one kind."""

    async def answer(request: Request) -> Response:
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise RequestError(415, "the content type must be application/json")
        read: tuple[Wanted, Any] = read_request(kind, await request.body())
        wanted, asked = read
        try:
            job = workshop.submit(lambda job: work(wanted, asked, job))
        except BusyError as error:
            most = workshop.workers + workshop.waiting
            raise RequestError(
                429, f"the server is busy with {most} requests, which is its limit; try again"
            ) from error
        if is_stream or "text/event-stream" in request.headers.get("accept", ""):
            return EventStream(job)
        leaving = asyncio.create_task(cancel_when_gone(request.receive, job))
        try:
            return JSONResponse(await finished(job, leaving))
        finally:
            leaving.cancel()
            job.cancel()

    return answer


async def cancel_when_gone(receive: Receive, job: Job) -> None:
    """Cancel a job once its client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    job.cancel()


async def finished(job: Job, leaving: "asyncio.Task[None]") -> Any:
    """Wait for a job; raise a ConnectionError if its client goes first."""
    result = asyncio.create_task(job.result())
    await asyncio.wait({result, leaving}, return_when=asyncio.FIRST_COMPLETED)
    if not result.done():
        result.cancel()
        raise ConnectionResetError
    try:
        return result.result()
    except Exception as error:
        raise refusal_of(error, job) from error


def refusal_of(error: Exception, job: Job) -> Exception:
    """Return the answer to an error of a job."""
    if isinstance(error, TooLongError):
        return RequestError(
            422,
            f"this took longer than the {job.seconds:g} seconds of one request; give a shorter text, or ask for less",
        )
    if isinstance(error, ValueError):
        return RequestError(422, " ".join(str(error).split()))
    return error


class EventStream(Response):
    """A job's events as they come, as server-sent events."""

    def __init__(self, job: Job):
        super().__init__()
        self.job = job

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        leaving = asyncio.create_task(cancel_when_gone(receive, self.job))
        telling = asyncio.create_task(self.tell(send))
        try:
            await asyncio.wait({leaving, telling}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.job.cancel()
            leaving.cancel()
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling

    async def tell(self, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        event = Event("waiting", {})
        while True:
            await send({"type": "http.response.body", "body": as_event(event, self.job), "more_body": True})
            if event.name in ("done", "error"):
                break
            event = await self.job.events.get()
        await send({"type": "http.response.body", "body": b""})


def as_event(event: Event, job: Job) -> bytes:
    """Return an event as a part of the stream."""
    value = event.value
    if isinstance(value, Exception):
        refusal = refusal_of(value, job)
        value = {"error": refusal.message if isinstance(refusal, RequestError) else "internal error"}
    return f"event: {event.name}\ndata: {json.dumps(value)}\n\n".encode()


def as_is(response: Response) -> Any:
    """Return a function that always gives the same answer."""

    async def answer(_request: Request) -> Response:
        return response

    return answer


def static(name: str, media: str) -> Any:
    """Return a function that answers with a file of this package."""
    body = (files("unordinal") / name).read_bytes()
    return as_is(Response(body, media_type=media))


async def refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    headers = {"retry-after": "5"} if error.status == 429 else None
    return JSONResponse({"error": error.message}, status_code=error.status, headers=headers)


async def gone(_request: Request, _error: Exception) -> Response:
    return Response(status_code=499)  # the client does not read it


async def failed(_request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": "internal error; the server's log has its kind"}, status_code=500)


async def not_found(request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": f"there is nothing at {request.url.path[:100]}"}, status_code=404)


async def not_allowed(request: Request, _error: Exception) -> Response:
    return JSONResponse({"error": f"{request.method[:20]} is not allowed here"}, status_code=405)
