"""source -> jobs -> workers -> outcomes -> writer.

Two bounded queues are the only coupling between the stages, and the only backpressure: a slow
writer fills `outcomes`, which stops the workers, which fills `jobs`, which stops the source.

Stopping is one idea: the source ends.  `stop` ends it early; whatever was accepted is still worked
and written.  A stage that raises cancels the others, and its error leaves `run`.

Jobs of one key are never under way together: the source waits until the earlier one is written.
So the later of two versions of a story meets the earlier one in the ledger, and no batch holds two.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Generic, Protocol, TypeVar


class Job(Protocol):
    """What flows in: a key, and a position in the listing to go on from."""

    @property
    def key(self) -> str: ...

    @property
    def position(self) -> int: ...


class _Done:
    """Travels a queue behind the last item."""


JobType = TypeVar("JobType", bound=Job)
Outcome = TypeVar("Outcome")
T = TypeVar("T")
DONE = _Done()
Queue = asyncio.Queue[T | _Done]


class UnderWay:
    """The jobs accepted and not yet written, in the order of the listing."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}
        self._written = asyncio.Event()
        self._last = 0

    async def enter(self, key: str, position: int) -> None:
        """Wait until no job of this key is under way, then count this one in."""
        while key in self._positions:
            self._written.clear()
            await self._written.wait()
        self._positions[key] = self._last = position

    def leave(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._positions.pop(key, None)
        self._written.set()

    def resume_from(self, written: Sequence[str]) -> int:
        """The position to go on from once `written` is on record: the oldest job still under way."""
        gone = set(written)
        return next((at for key, at in self._positions.items() if key not in gone), self._last)


class Pipeline(Generic[JobType, Outcome]):
    """One run through the stages.

    `work` turns a job into an outcome and must not raise for a bad job; `write` records a batch of
    outcomes with the position to resume from.
    """

    def __init__(
        self,
        work: Callable[[JobType], Awaitable[tuple[JobType, Outcome]]],
        write: Callable[[Sequence[Outcome], int], Awaitable[None]],
        *,
        workers: int,
        depth: int,
        batch: int,
        stop: asyncio.Event,
    ) -> None:
        self._work = work
        self._write = write
        self._workers = workers
        self._batch = batch
        self._stop = stop
        self._under_way = UnderWay()
        self.jobs: Queue[JobType] = asyncio.Queue(depth)
        self.outcomes: Queue[tuple[JobType, Outcome]] = asyncio.Queue(depth)

    async def run(self, source: AsyncIterator[JobType]) -> bool:
        """Until the source has ended, or `stop` is set, and all that was accepted is written.

        Returns whether the source came to its own end.
        """
        async with asyncio.TaskGroup() as stages:
            feeding = stages.create_task(self._feed(source), name="source")
            stages.create_task(self._crew(), name="workers")
            stages.create_task(self._drain(), name="writer")
        return feeding.result()

    async def _feed(self, source: AsyncIterator[JobType]) -> bool:
        async def pull() -> None:
            async with aclosing(source):  # type: ignore[type-var]
                async for job in source:
                    await self._under_way.enter(job.key, job.position)
                    await self.jobs.put(job)

        async def halt() -> None:
            await self._stop.wait()
            pulling.cancel()  # even in the middle of a query; the group takes it for a normal end

        async with asyncio.TaskGroup() as either:
            pulling = either.create_task(pull())
            halting = either.create_task(halt())
            pulling.add_done_callback(lambda _: halting.cancel())
        await self.jobs.put(DONE)
        return not pulling.cancelled()

    async def _crew(self) -> None:
        async def worker() -> None:
            async for job in _until_done(self.jobs):
                await self.outcomes.put(await self._work(job))

        async with asyncio.TaskGroup() as crew:
            for n in range(self._workers):
                crew.create_task(worker(), name=f"worker-{n}")
        await self.outcomes.put(DONE)

    async def _drain(self) -> None:
        """Write whatever is waiting, so that batches grow exactly when the writer lags."""
        async for first in _until_done(self.outcomes):
            ready = [first]
            while len(ready) < self._batch and not self.outcomes.empty():
                item = self.outcomes.get_nowait()
                if isinstance(item, _Done):
                    self.outcomes.put_nowait(item)
                    break
                ready.append(item)
            keys = [job.key for job, _ in ready]
            await self._write([outcome for _, outcome in ready], self._under_way.resume_from(keys))
            self._under_way.leave(keys)


async def _until_done(queue: Queue[T]) -> AsyncIterator[T]:
    while not isinstance(item := await queue.get(), _Done):
        yield item
    queue.put_nowait(item)  # for the siblings; the slot just freed is ours
