"""Cancels a task at a chosen await point, a point at which any task of the event loop suspends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class AwaitPoints:
    """Runs a coroutine as a task and cancels the task at await point number `cancel_at`.

    The first point is 1; 0 means that the task is never cancelled.  The points of all tasks count, including those of
    tasks that the coroutine starts.
    """

    def __init__(self, cancel_at: int) -> None:
        self._points_left = cancel_at
        self._main: asyncio.Task[Any] | None = None

    async def run(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work`; returns whether it was cancelled before it ended."""
        loop = asyncio.get_running_loop()
        loop.set_task_factory(self._start)
        try:
            self._main = loop.create_task(work)
            await asyncio.wait([self._main])
        finally:
            loop.set_task_factory(None)
        if self._main.cancelled():
            return True
        self._main.result()
        return False

    def _start(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_CountedCoroutine(work, self._count_point), loop=loop, **options)

    def _count_point(self) -> None:
        self._points_left -= 1
        if self._points_left == 0 and self._main is not None:
            self._main.cancel()


class _CountedCoroutine(Coroutine[Any, Any, Any]):
    """A coroutine that reports each of its suspensions."""

    def __init__(self, work: Coroutine[Any, Any, Any], on_suspend: Callable[[], None]) -> None:
        self._work = work
        self._on_suspend = on_suspend

    def send(self, value: Any) -> Any:
        awaited = self._work.send(value)
        self._on_suspend()
        return awaited

    def throw(self, *error: Any) -> Any:
        awaited = self._work.throw(*error)
        self._on_suspend()
        return awaited

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()
