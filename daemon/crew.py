"""Threads that wait for the network and compute, for coroutines: where pages are few, or only some are read."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

from daemon.concurrency import Concurrency

R = TypeVar("R")
Answered = tuple[asyncio.Future[Any], Any, Exception | None]


class Crew:
    """At most `most` threads, as many of them at work as `concurrency` finds good."""

    def __init__(self, most: int) -> None:
        self.concurrency = Concurrency(most)
        self._tasks: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._threads = 0
        self._answered: list[Answered] = []
        self._lock = threading.Lock()

    async def __call__(self, work: Callable[[], R]) -> R:
        """`work()` on a thread of the crew, or what it raises."""
        async with self.concurrency.slot():
            loop = asyncio.get_running_loop()
            answer: asyncio.Future[R] = loop.create_future()
            if self._threads < self.concurrency.in_flight:
                self._threads += 1
                threading.Thread(target=self._serve, args=(loop,), name=f"crew_{self._threads}", daemon=True).start()
            self._tasks.put((work, answer))
            return await answer

    def close(self) -> None:
        """Send the threads home, when they have done what they have in hand."""
        for _ in range(self._threads):
            self._tasks.put(None)
        self._threads = 0

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        while (task := self._tasks.get()) is not None:
            work, answer = task
            try:
                self._answer(loop, (answer, work(), None))
            except Exception as error:  # noqa: BLE001 - raised again where the work is awaited
                self._answer(loop, (answer, None, error))
            except BaseException as error:  # noqa: BLE001 - which the loop would not survive
                self._answer(loop, (answer, None, RuntimeError(f"{type(error).__name__}: {error}")))

    def _answer(self, loop: asyncio.AbstractEventLoop, answered: Answered) -> None:
        """Tell the event loop, once for all that it has not looked at."""
        with self._lock:
            self._answered.append(answered)
            first = len(self._answered) == 1
        if first:
            with suppress(RuntimeError):  # the loop is closed: the run ended by an error, nobody waits
                loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            answered, self._answered = self._answered, []
        for answer, result, error in answered:
            if answer.done():  # whoever awaited it was cancelled
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)
