"""The stages of a run: source -> jobs -> workers -> outcomes -> lookups -> writer.

Bounded queues are the only coupling between the stages, and the only backpressure: if the writer is slow, `outcomes`
fills up and the workers wait; then `jobs` fills up and the source waits.

While one batch is written, the next ones are looked up, because a lookup spends most of its time waiting for the index,
for threads and for the interpreter.  The results of a lookup may therefore lack the batches before its own.

A run stops by ending its source: `stop` ends it early, and every job that was accepted is still processed and written.
If a stage raises, the others are cancelled, and the error leaves `run`.

Two jobs with the same key are never in progress together: the source waits until the earlier one is written.  So the
later version of a story finds the earlier one in the ledger, and no batch holds both.

Each batch costs a commit and a round trip however small it is, so a short wait lets it fill.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, Literal, Protocol, TypeVar


class Job(Protocol):
    """What the source yields: `key` identifies a story, and `position` is its place in the listing."""

    @property
    def key(self) -> str: ...

    @property
    def position(self) -> int: ...


class _Done:
    """The end of a queue."""


JobType = TypeVar("JobType", bound=Job)
Outcome = TypeVar("Outcome")
Lookups = TypeVar("Lookups")
T = TypeVar("T")
DONE = _Done()
Queue = asyncio.Queue[T | _Done]
Stage = Literal["source", "workers", "writer"]
LINGER_SECONDS = 0.2
MAX_BATCHES = 3  # that are looked up or written at the same time
SMOOTHING = 0.2  # weight of the latest batch in the moving averages


class JobsInProgress:
    """The jobs that are accepted but not written, in the order of the listing.

    Calls `flush` when a new job must wait for one of them to be written.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        self._positions: dict[str, int] = {}
        self._written = asyncio.Event()
        self._flush = flush
        self._last = 0

    async def add(self, key: str, position: int) -> None:
        """Wait until no job with this key is in progress, then add one."""
        while key in self._positions:
            self._flush()
            self._written.clear()
            await self._written.wait()
        self._positions[key] = self._last = position

    def remove(self, keys: Sequence[str]) -> None:
        """Remove jobs that are written."""
        for key in keys:
            self._positions.pop(key, None)
        self._written.set()

    def resume_position(self, written: Sequence[str]) -> int:
        """The position to resume from once the jobs `written` are: that of the oldest job then in progress."""
        gone = set(written)
        return next((position for key, position in self._positions.items() if key not in gone), self._last)


class Pipeline(Generic[JobType, Outcome, Lookups]):
    """The stages of one run.

    `work` turns a job into an outcome and must not raise for a bad job.  `look_up` looks up a batch of outcomes, and
    `write` records it with the results and with the position to resume from.  A batch waits up to `linger` seconds to
    fill.  `cpu_seconds` returns the processor time that the run has used.
    """

    def __init__(
        self,
        work: Callable[[JobType], Awaitable[tuple[JobType, Outcome]]],
        look_up: Callable[[Sequence[Outcome]], Coroutine[Any, Any, Lookups]],
        write: Callable[[Sequence[Outcome], Lookups, int], Awaitable[None]],
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
        self._batch_is_due = asyncio.Event()
        self._workers_ended = False
        # moving averages: the share of batches that had to wait for the writer, or found the workers waiting for jobs
        self._stalled = self._starved = 0.0
        self.cores = 0.0  # moving average of the cores in use
        self._in_progress = JobsInProgress(self._batch_is_due.set)
        self.jobs: Queue[JobType] = asyncio.Queue(depth)
        self.outcomes: Queue[tuple[JobType, Outcome]] = asyncio.Queue(depth)
        self._batches: Queue[tuple[list[tuple[JobType, Outcome]], asyncio.Task[Lookups]]] = asyncio.Queue()
        self._batch_slots = asyncio.Semaphore(MAX_BATCHES)

    @property
    def limiting(self) -> Stage:
        """The stage that the others have recently waited for."""
        if self._stalled > 0.5:
            return "writer"
        return "source" if self._starved > 0.5 else "workers"

    async def run(self, source: AsyncIterator[JobType]) -> bool:
        """Run until the source ends or `stop` is set, and all accepted jobs are written.

        Returns whether the source ended by itself.
        """
        async with asyncio.TaskGroup() as stages:
            feeding = stages.create_task(self._feed(source), name="source")
            stages.create_task(self._work_all(), name="workers")
            stages.create_task(self._look_up_all(stages), name="lookups")
            stages.create_task(self._write_all(), name="writer")
        return feeding.result()

    async def _feed(self, source: AsyncIterator[JobType]) -> bool:
        async def pull() -> None:
            async with aclosing(source):  # type: ignore[type-var]
                async for job in source:
                    await self._in_progress.add(job.key, job.position)
                    await self.jobs.put(job)

        async def halt() -> None:
            await self._stop.wait()
            pulling.cancel()  # even during a query; the task group treats it as a normal end

        async with asyncio.TaskGroup() as tasks:
            pulling = tasks.create_task(pull())
            halting = tasks.create_task(halt())
            pulling.add_done_callback(lambda _: halting.cancel())
        await self.jobs.put(DONE)
        return not pulling.cancelled()

    async def _work_all(self) -> None:
        full = min(self._batch - 1, self._depth)  # a batch has one outcome before it takes those in the queue

        async def worker() -> None:
            async for job in _until_done(self.jobs):
                await self.outcomes.put(await self._work(job))
                if self.outcomes.qsize() >= full:
                    self._batch_is_due.set()

        async with asyncio.TaskGroup() as workers:
            for n in range(self._workers):
                workers.create_task(worker(), name=f"worker-{n}")
        self._workers_ended = True
        self._batch_is_due.set()
        await self.outcomes.put(DONE)

    async def _look_up_all(self, stages: asyncio.TaskGroup) -> None:
        """Batch the outcomes that are ready and look the batch up; batches grow when the writer is slow."""
        async for first in _until_done(self.outcomes):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
                    await self._batch_is_due.wait()
            self._stalled += SMOOTHING * (self._batch_slots.locked() - self._stalled)
            self._starved += SMOOTHING * (self.jobs.empty() - self._starved)
            await self._batch_slots.acquire()
            batch = [first, *self._take_ready()]
            lookup = stages.create_task(self._look_up([outcome for _, outcome in batch]))
            self._batches.put_nowait((batch, lookup))
        self._batches.put_nowait(DONE)

    async def _write_all(self) -> None:
        """Write the batches in order."""
        began, cpu_began = time.perf_counter(), self._cpu_seconds()
        async for batch, lookup in _until_done(self._batches):
            keys, results = [job.key for job, _ in batch], await lookup
            await self._write([outcome for _, outcome in batch], results, self._in_progress.resume_position(keys))
            self._in_progress.remove(keys)
            self._batch_slots.release()
            seconds, began = time.perf_counter() - began, time.perf_counter()
            cpu, cpu_began = self._cpu_seconds() - cpu_began, self._cpu_seconds()
            self.cores += SMOOTHING * (cpu / seconds - self.cores)

    def _take_ready(self) -> list[tuple[JobType, Outcome]]:
        """Take the outcomes that are in the queue now, as many as still fit into a batch."""
        ready: list[tuple[JobType, Outcome]] = []
        while len(ready) < self._batch - 1 and not self.outcomes.empty():
            item = self.outcomes.get_nowait()
            if isinstance(item, _Done):
                self.outcomes.put_nowait(item)
                break
            ready.append(item)
        if not self._workers_ended:
            self._batch_is_due.clear()
        return ready


async def _until_done(queue: Queue[T]) -> AsyncIterator[T]:
    while not isinstance(item := await queue.get(), _Done):
        yield item
    queue.put_nowait(item)  # for the other readers of the queue; there is room, because one item was just taken
