"""Cancellation at a chosen await point: one of the times at which some task of the event loop suspends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


class AwaitPoints:
    """Runs a coroutine as a task, and cancels that task at the await point number `cancel_at`, from 1; never for 0.

    Points are counted over all tasks, those that the coroutine starts included.
    """

    def __init__(self, cancel_at: int) -> None:
        self._left = cancel_at
        self._main: asyncio.Task[Any] | None = None

    async def run(self, work: Coroutine[Any, Any, None]) -> bool:
        """Whether `work` was cancelled before it ended."""
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
        return asyncio.Task(_Counted(work, self._suspended), loop=loop, **options)

    def _suspended(self) -> None:
        self._left -= 1
        if self._left == 0 and self._main is not None:
            self._main.cancel()


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine that reports each of its suspensions."""

    def __init__(self, work: Coroutine[Any, Any, Any], suspended: Callable[[], None]) -> None:
        self._work = work
        self._suspended = suspended

    def send(self, value: Any) -> Any:
        awaited = self._work.send(value)
        self._suspended()
        return awaited

    def throw(self, *error: Any) -> Any:
        awaited = self._work.throw(*error)
        self._suspended()
        return awaited

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()
