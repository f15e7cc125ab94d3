"""A time limit that begins when work is asked to stop."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class GracePeriodOver(Exception):
    """The work did not end within its grace period and was cancelled."""


async def within_grace_period(work: Awaitable[T], stop: asyncio.Event, seconds: float) -> T:
    """Await `work`; cancel it and raise GracePeriodOver if it has not ended `seconds` after `stop` is set."""

    async def start_when_stopped() -> None:
        await stop.wait()
        deadline.reschedule(asyncio.get_running_loop().time() + seconds)

    try:
        async with asyncio.timeout(None) as deadline:
            watcher = asyncio.create_task(start_when_stopped())
            try:
                return await work
            finally:
                watcher.cancel()
    except TimeoutError as error:
        if deadline.expired():
            raise GracePeriodOver from error
        raise  # a TimeoutError of the work itself
