"""The time that work has left once it is told to stop."""

import asyncio
from collections.abc import Awaitable

import structlog

log = structlog.get_logger()


async def drained(work: Awaitable[bool], stop: asyncio.Event, seconds: float) -> bool:
    """What `work` gives; False where it is not done so many seconds after `stop` was set."""

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
    except TimeoutError:
        log.warning("not drained in time; the next run does what is left")
        return False
