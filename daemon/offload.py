"""Work for threads beside the event loop, handed over by the handful: a hop there and back costs as much as a page."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Job = tuple[T, asyncio.Future[R]]


class Offload(Generic[T, R]):
    """Calls `work` on each item, on one of `threads`; a thread takes what is waiting, up to `most` items."""

    def __init__(self, work: Callable[[T], R], *, threads: int, most: int) -> None:
        self._work = work
        self._most = most
        self._waiting: deque[Job[T, R]] = deque()
        self._idle = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="offload")

    @property
    def waiting(self) -> int:
        """Items that no thread has taken yet."""
        return len(self._waiting)

    async def __call__(self, item: T) -> R:
        """`work(item)`, or what it raises."""
        answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        self._hand_over()
        return await answer

    def close(self) -> None:
        """Wait for what the threads have in hand."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _hand_over(self) -> None:
        if not (self._idle and self._waiting):
            return
        jobs = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
        self._idle -= 1
        done = asyncio.get_running_loop().run_in_executor(self._pool, self._each, jobs)
        done.add_done_callback(lambda _: self._deliver(jobs, done))

    def _each(self, jobs: Sequence[Job[T, R]]) -> list[R | Exception]:
        return [self._one(item) for item, _ in jobs]

    def _one(self, item: T) -> R | Exception:
        try:
            return self._work(item)
        except Exception as error:  # noqa: BLE001 - raised again where the item is awaited
            return error

    def _deliver(self, jobs: Sequence[Job[T, R]], done: asyncio.Future[list[R | Exception]]) -> None:
        self._idle += 1
        for (_, answer), result in zip(jobs, done.result(), strict=True):
            if answer.done():  # whoever awaited it was cancelled
                continue
            if isinstance(result, Exception):
                answer.set_exception(result)
            else:
                answer.set_result(result)
        self._hand_over()
