"""The time that work has left once it is asked to stop."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class GracePeriodOver(Exception):
    """The work was cancelled: it had not ended when its grace period was over."""


async def within_grace_period(work: Awaitable[T], stop: asyncio.Event, seconds: float) -> T:
    """The result of `work`.  Raises GracePeriodOver where it has not ended so many seconds after `stop` was set."""

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
