"""Lanes: how many requests are worked on at a time, how many wait for their turn, and how long.

Short texts and long ones have a lane each, so that a novel does not hold up the stories behind it.
"""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from neardup.problem_types import UNAVAILABLE
from neardup.serve.problems import BUSY, Refused
from neardup.telemetry.metrics import QUEUE_DEPTH

T = TypeVar("T")
LATE_SECONDS = 0.5  # after its deadline, work may still say what it has


class Deadline:
    """A point in time; what is `left` until then is in seconds, and negative afterwards."""

    def __init__(self, seconds: float) -> None:
        self._began = time.monotonic()
        self._seconds = seconds

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._seconds - self.taken

    @property
    def taken(self) -> float:
        """Seconds since the deadline was set."""
        return time.monotonic() - self._began


class Lane:
    """Works on a few requests at a time; up to `queue` more wait."""

    def __init__(self, name: str, slots: int, queue: int) -> None:
        self._free = asyncio.Semaphore(slots)
        self._queue = queue
        self._waiting = 0
        self._depth = QUEUE_DEPTH.labels(name)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def carry_out(self, work: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """The result of `work`, once it had its turn.

        Raises Refused: BUSY if too many wait, UNAVAILABLE if the deadline passes.  Work that has begun is never
        cancelled: its threads would go on, and a new request would take its place beside them.
        """
        try:
            await self._turn(deadline)
        except BaseException:
            work.close()
            raise
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        await asyncio.wait({task}, timeout=max(deadline.left, 0) + LATE_SECONDS)
        if not task.done():
            raise Refused(UNAVAILABLE, "the check takes longer than serve.deadline_seconds")
        return task.result()

    async def drain(self) -> None:
        """Wait for the work under way."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _turn(self, deadline: Deadline) -> None:
        if self._free.locked() and self._waiting >= self._queue:
            raise Refused(BUSY, f"{self._waiting} requests are waiting")
        self._waiting += 1
        self._depth.set(self._waiting)
        try:
            async with asyncio.timeout(max(deadline.left, 0)):
                await self._free.acquire()
        except TimeoutError:
            raise Refused(UNAVAILABLE, "the request had no turn within serve.deadline_seconds") from None
        finally:
            self._waiting -= 1
            self._depth.set(self._waiting)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._free.release()
        if not task.cancelled():
            task.exception()  # marks it as seen: no caller waits for work that is late
