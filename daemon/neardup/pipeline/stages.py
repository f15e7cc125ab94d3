"""source -> jobs -> workers -> outcomes -> look-ups -> writer.

Bounded queues are the only coupling between the stages, and the only backpressure: a slow writer
fills `outcomes`, which stops the workers, which fills `jobs`, which stops the source.

While one batch is written the next are looked up: a look-up is waiting, most of it, for the index, for
threads and for the interpreter, and what a batch finds may be of a moment before others were written.

Stopping is one idea: the source ends.  `stop` ends it early; whatever was accepted is still worked
and written.  A stage that raises cancels the others, and its error leaves `run`.

Jobs of one key are never under way together: the source waits until the earlier one is written.
So the later of two versions of a story meets the earlier one in the ledger, and no batch holds two.

A batch costs a commit and a round trip however small it is, so the writer lingers a moment for it to
fill.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, Literal, Protocol, TypeVar


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
Looked = TypeVar("Looked")
T = TypeVar("T")
DONE = _Done()
Queue = asyncio.Queue[T | _Done]
Stage = Literal["source", "workers", "writer"]
LINGER_SECONDS = 0.2
BATCHES = 3  # looked up or written at a time
SMOOTHING = 0.2  # the weight of the last batch in the averages that tell which stage limits


class UnderWay:
    """The jobs accepted and not yet written, in the order of the listing."""

    def __init__(self, hurry: Callable[[], None]) -> None:
        self._positions: dict[str, int] = {}
        self._written = asyncio.Event()
        self._hurry = hurry
        self._last = 0

    async def enter(self, key: str, position: int) -> None:
        """Wait until no job of this key is under way, then count this one in."""
        while key in self._positions:
            self._hurry()
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


class Pipeline(Generic[JobType, Outcome, Looked]):
    """One run through the stages.

    `work` turns a job into an outcome and must not raise for a bad job; `look_up` finds what there is about
    a batch of outcomes, and `write` records them with that and with the position to resume from.  A batch
    is waited for `linger` seconds to fill.  `cpu_seconds` tells what all of this has used of the processor.
    """

    def __init__(
        self,
        work: Callable[[JobType], Awaitable[tuple[JobType, Outcome]]],
        look_up: Callable[[Sequence[Outcome]], Coroutine[Any, Any, Looked]],
        write: Callable[[Sequence[Outcome], Looked, int], Awaitable[None]],
        *,
        workers: int,
        depth: int,
        batch: int,
        stop: asyncio.Event,
        linger: float = LINGER_SECONDS,
        cpu_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._work = work
        self._look_up = look_up
        self._write = write
        self._workers = workers
        self._depth = depth
        self._batch = batch
        self._stop = stop
        self._linger = linger
        self._cpu_seconds = cpu_seconds
        self._enough = asyncio.Event()
        self._worked = False
        # how often, of late, a batch had to wait for the writer, and found the workers waiting for jobs
        self._stalled = self._starved = 0.0
        self.cores = 0.0  # kept busy, of late
        self._under_way = UnderWay(self._enough.set)
        self.jobs: Queue[JobType] = asyncio.Queue(depth)
        self.outcomes: Queue[tuple[JobType, Outcome]] = asyncio.Queue(depth)
        self._batches: Queue[tuple[list[tuple[JobType, Outcome]], asyncio.Task[Looked]]] = asyncio.Queue()
        self._room = asyncio.Semaphore(BATCHES)

    @property
    def limiting(self) -> Stage:
        """The stage that the others wait for, of late."""
        if self._stalled > 0.5:
            return "writer"
        return "source" if self._starved > 0.5 else "workers"

    async def run(self, source: AsyncIterator[JobType]) -> bool:
        """Until the source has ended, or `stop` is set, and all that was accepted is written.

        Returns whether the source came to its own end.
        """
        async with asyncio.TaskGroup() as stages:
            feeding = stages.create_task(self._feed(source), name="source")
            stages.create_task(self._crew(), name="workers")
            stages.create_task(self._gather(stages), name="look-ups")
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
        enough = min(self._batch - 1, self._depth)  # the writer has one in hand

        async def worker() -> None:
            async for job in _until_done(self.jobs):
                await self.outcomes.put(await self._work(job))
                if self.outcomes.qsize() >= enough:
                    self._enough.set()

        async with asyncio.TaskGroup() as crew:
            for n in range(self._workers):
                crew.create_task(worker(), name=f"worker-{n}")
        self._worked = True
        self._enough.set()
        await self.outcomes.put(DONE)

    async def _gather(self, stages: asyncio.TaskGroup) -> None:
        """Look up whatever is waiting, so that batches grow when the writer lags."""
        async for first in _until_done(self.outcomes):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
                    await self._enough.wait()
            self._stalled += SMOOTHING * (self._room.locked() - self._stalled)
            self._starved += SMOOTHING * (self.jobs.empty() - self._starved)
            await self._room.acquire()
            ready = [first, *self._waiting()]
            looking = stages.create_task(self._look_up([outcome for _, outcome in ready]))
            self._batches.put_nowait((ready, looking))
        self._batches.put_nowait(DONE)

    async def _drain(self) -> None:
        """Write the batches in their order."""
        began, spent = time.perf_counter(), self._cpu_seconds()
        async for ready, looking in _until_done(self._batches):
            keys, looked = [job.key for job, _ in ready], await looking
            await self._write([outcome for _, outcome in ready], looked, self._under_way.resume_from(keys))
            self._under_way.leave(keys)
            self._room.release()
            seconds, began = time.perf_counter() - began, time.perf_counter()
            cpu, spent = self._cpu_seconds() - spent, self._cpu_seconds()
            self.cores += SMOOTHING * (cpu / seconds - self.cores)

    def _waiting(self) -> list[tuple[JobType, Outcome]]:
        """What else is there for the batch, now."""
        ready: list[tuple[JobType, Outcome]] = []
        while len(ready) < self._batch - 1 and not self.outcomes.empty():
            item = self.outcomes.get_nowait()
            if isinstance(item, _Done):
                self.outcomes.put_nowait(item)
                break
            ready.append(item)
        if not self._worked:
            self._enough.clear()
        return ready


async def _until_done(queue: Queue[T]) -> AsyncIterator[T]:
    while not isinstance(item := await queue.get(), _Done):
        yield item
    queue.put_nowait(item)  # for the siblings; the slot just freed is ours
