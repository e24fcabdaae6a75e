"""Jobs: a queue with an end, and work that stops when nobody waits."""

import asyncio
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from unordinal.web.jobs import BusyError, Job, TooLongError, Workshop


def steps(job: Job) -> str:
    """Work of many short steps."""
    with job.progress("working", 1000) as advance:
        for _ in range(10_000):
            time.sleep(0.002)
            advance(1)
    return "all of them"


def in_loop(test: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


def test_a_job_returns_its_result_or_its_error() -> None:
    async def check() -> None:
        shop = Workshop(1, 4)
        assert await shop.submit(lambda job: 3).result() == 3
        with pytest.raises(ZeroDivisionError):
            await shop.submit(lambda job: 1 // 0).result()
        shop.close()

    in_loop(check)


def test_a_full_queue_is_refused_and_a_cancelled_job_frees_its_place() -> None:
    async def check() -> None:
        shop = Workshop(1, 1)
        running, waiting = shop.submit(steps), shop.submit(steps)
        with pytest.raises(BusyError):
            shop.submit(steps)
        waiting.cancel()
        assert shop.num_jobs == 1
        running.cancel()
        began = time.monotonic()
        assert await shop.submit(lambda job: "next").result() == "next"
        assert time.monotonic() - began < 1
        assert shop.num_jobs <= 1
        shop.close()

    in_loop(check)


def test_a_slow_job_does_not_hold_up_a_quick_one() -> None:
    async def check() -> None:
        shop = Workshop(2, 4)
        slow = shop.submit(steps)
        assert await shop.submit(lambda job: "quick").result() == "quick"
        assert slow.began is not None
        shop.close()

    in_loop(check)


def test_a_job_may_not_take_too_long() -> None:
    async def check() -> None:
        shop = Workshop(1, 1, seconds=0.05)
        with pytest.raises(TooLongError):
            await shop.submit(steps).result()
        shop.close()

    in_loop(check)


def test_events_come_in_order_and_closing_stops_everything() -> None:
    async def check() -> None:
        shop = Workshop(1, 1)

        def work(job: Job) -> str:
            for number in range(5):
                job.tell("frame", number)
            return "end"

        job = shop.submit(work)
        events = [await job.events.get() for _ in range(6)]
        assert [event.value for event in events] == [0, 1, 2, 3, 4, "end"]
        shop.submit(steps)
        began = time.monotonic()
        shop.close()
        assert time.monotonic() - began < 1
        assert shop.threads
        assert not any(thread.is_alive() for thread in shop.threads)

    in_loop(check)


def test_what_nobody_waits_for_any_more_is_not_kept() -> None:
    """A job that is dropped while it waits frees its place and what it holds at once."""

    class Body:
        pass

    async def check() -> None:
        shop = Workshop(1, 2)
        running = shop.submit(steps)
        while shop.queue:
            await asyncio.sleep(0.01)
        for _ in range(50):
            body = Body()
            held = weakref.ref(body)
            job = shop.submit(partial(lambda body, _job: body, body))
            job.cancel()
            del body, job
            assert held() is None
        assert shop.num_jobs == 1
        running.cancel()
        shop.close()

    in_loop(check)
