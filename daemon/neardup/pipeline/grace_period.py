"""A time limit that begins when work is asked to stop."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class GracePeriodOver(Exception):
    """The work did not end within its grace period and was cancelled."""


async def within_grace_period(work: Awaitable[T], stop: asyncio.Event, seconds: float) -> T:
    """Await `work`.  Raises GracePeriodOver if it has not ended `seconds` after `stop` is set."""

    async def limit() -> None:
        await stop.wait()
        deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    try:
        async with asyncio.timeout(None) as deadline:
            watching = asyncio.create_task(limit())
            try:
                return await work
            finally:
                watching.cancel()
    except TimeoutError as error:
        if deadline.expired():
            raise GracePeriodOver from error
        raise
