"""The stages of a run: source -> jobs -> workers -> outcomes -> lookups -> writer.

What moves from stage to stage are blocks: jobs, or outcomes, in columns.  Bounded queues are the only coupling between
the stages, and the only backpressure; they count jobs and outcomes, not blocks.  If the writer is slow, `outcomes`
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
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Hashable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Generic, Literal, Protocol, Self, TypeVar


class Block(Protocol):
    """Several jobs or outcomes in their order; `keys` identify their stories."""

    @property
    def keys(self) -> Sequence[Hashable]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, rows: slice, /) -> Self: ...


class Jobs(Block, Protocol):
    """What the source yields: `positions` are the places of the jobs in the listing."""

    @property
    def positions(self) -> Sequence[int]: ...


JobsType = TypeVar("JobsType", bound=Jobs)
Outcomes = TypeVar("Outcomes", bound=Block)
Lookups = TypeVar("Lookups")
B = TypeVar("B", bound=Block)
Deliver = Callable[[Outcomes], Awaitable[None]]
Stage = Literal["source", "workers", "writer"]
LINGER_SECONDS = 0.2
BLOCKS_IN_WORK = 4  # at most: a worker that is free waits for others, or blocks would become ever smaller
MAX_BATCHES = 3  # that are looked up or written at the same time
SMOOTHING = 0.2  # weight of the latest batch in the moving averages


class JobsInProgress:
    """The jobs that are accepted but not written, in the order of the listing.

    Calls `flush` when a new job must wait for one of them to be written.
    """

    def __init__(self, flush: Callable[[], None]) -> None:
        self._positions: dict[Hashable, int] = {}
        self._written = asyncio.Event()
        self._flush = flush
        self._last = 0

    async def add(self, keys: Sequence[Hashable], positions: Sequence[int]) -> int:
        """Add jobs up to the first whose key is in progress, at least one; returns how many.

        Waits while the very first one's is.
        """
        while keys[0] in self._positions:
            self._flush()
            self._written.clear()
            await self._written.wait()
        new = dict(zip(keys, positions, strict=True))
        if len(new) < len(keys) or not self._positions.keys().isdisjoint(new):
            new = {}
            for key, position in zip(keys, positions, strict=True):
                if key in new or key in self._positions:
                    break
                new[key] = position
        self._positions |= new
        self._last = positions[len(new) - 1]
        return len(new)

    def remove(self, keys: Sequence[Hashable]) -> None:
        for key in keys:
            self._positions.pop(key, None)
        self._written.set()

    def find_resume_position(self, written: Sequence[Hashable]) -> int:
        """The position to resume from once the jobs `written` are: that of the oldest job then in progress."""
        gone = set(written)
        return next((position for key, position in self._positions.items() if key not in gone), self._last)


class BlockQueue(Generic[B]):
    """A bounded queue of blocks: it holds up to `capacity` items, and divides blocks."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._blocks: deque[B] = deque()
        self._size = 0
        self._ended = False
        self._filled, self._drained = asyncio.Event(), asyncio.Event()

    def qsize(self) -> int:
        return self._size

    def empty(self) -> bool:
        return not self._size

    def full(self) -> bool:
        return self._size >= self._capacity

    def put_some(self, block: B) -> int:
        """Put as many items of a block as there is room for; returns how many."""
        count = min(len(block), self._capacity - self._size)
        if count:
            self._blocks.append(block[:count])
            self._size += count
            self._filled.set()
        return count

    async def wait_for_room(self) -> None:
        while self.full():
            self._drained.clear()
            await self._drained.wait()

    async def put(self, block: B) -> None:
        """Put a block, in parts while there is no room for all of it."""
        while len(block):
            await self.wait_for_room()
            block = block[self.put_some(block) :]

    def end(self) -> None:
        """Take note that no more blocks follow."""
        self._ended = True
        self._filled.set()

    async def wait_for_items(self) -> bool:
        """Wait until there is an item; False if there is none and no more follow."""
        while not self._size and not self._ended:
            self._filled.clear()
            await self._filled.wait()
        return self._size > 0

    def take(self, most: int) -> B:
        """The oldest items, up to `most` and of one block."""
        block = self._blocks.popleft()
        if len(block) > most:
            self._blocks.appendleft(block[most:])
            block = block[:most]
        self._size -= len(block)
        self._drained.set()
        return block


class Pipeline(Generic[JobsType, Outcomes, Lookups]):
    """The stages of one run.

    `admit` divides a block of jobs into those to work on and the outcomes of the others.  `work` delivers the outcomes
    of jobs and must not raise for a bad job.  `look_up` looks up a batch of outcomes, which `join` makes of blocks, and
    `write` records it with the results and with the position to resume from.  Up to `workers` jobs are worked on at a
    time; `depth` is the capacity of each queue.  A batch, of `batch` outcomes at most, waits up to `linger` seconds to
    fill.  `cpu_seconds` returns the processor time that the run used.
    """

    def __init__(
        self,
        admit: Callable[[JobsType], Awaitable[tuple[JobsType, Outcomes]]],
        work: Callable[[JobsType, Deliver[Outcomes]], Coroutine[Any, Any, None]],
        join: Callable[[Sequence[Outcomes]], Outcomes],
        look_up: Callable[[Outcomes], Coroutine[Any, Any, Lookups]],
        write: Callable[[Outcomes, Lookups, int], Awaitable[None]],
        *,
        workers: int,
        depth: int,
        batch: int,
        stop: asyncio.Event,
        linger: float = LINGER_SECONDS,
        cpu_seconds: Callable[[], float] = time.process_time,
    ) -> None:
        self._admit = admit
        self._work = work
        self._join = join
        self._look_up = look_up
        self._write = write
        self._workers = workers
        self._least_free = max(workers // BLOCKS_IN_WORK, 1)  # workers, before jobs are taken
        self._full = min(batch, depth)  # outcomes that make a batch due
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
        self.jobs: BlockQueue[JobsType] = BlockQueue(depth)
        self.outcomes: BlockQueue[Outcomes] = BlockQueue(depth)
        self._in_work = 0
        self._worker_is_free = asyncio.Event()
        self._batches: asyncio.Queue[tuple[Outcomes, asyncio.Task[Lookups]] | None] = asyncio.Queue()
        self._batch_slots = asyncio.Semaphore(MAX_BATCHES)  # the bound of `_batches`

    @property
    def limiting(self) -> Stage:
        """The stage that the others have recently waited for."""
        if self._stalled > 0.5:
            return "writer"
        return "source" if self._starved > 0.5 else "workers"

    async def run(self, source: AsyncGenerator[JobsType, None]) -> bool:
        """Run until the source ends or `stop` is set, and all accepted jobs are written.

        Returns whether the source ended by itself.
        """
        async with asyncio.TaskGroup() as stages:
            feeding = stages.create_task(self._feed(source), name="source")
            stages.create_task(self._work_all(), name="workers")
            stages.create_task(self._look_up_all(stages), name="lookups")
            stages.create_task(self._write_all(), name="writer")
        return feeding.result()

    async def _feed(self, source: AsyncGenerator[JobsType, None]) -> bool:
        async def pull() -> None:
            async with aclosing(source):
                async for block in source:
                    await self._accept(block)

        async def halt() -> None:
            await self._stop.wait()
            pulling.cancel()  # even during a query; the task group treats it as a normal end

        async with asyncio.TaskGroup() as tasks:
            pulling = tasks.create_task(pull())
            halting = tasks.create_task(halt())
            pulling.add_done_callback(lambda _: halting.cancel())
        self.jobs.end()
        return not pulling.cancelled()

    async def _accept(self, block: JobsType) -> None:
        """Put the jobs of a block in progress, in parts where some must wait for earlier ones with their keys."""
        while len(block):
            count = await self._in_progress.add(block.keys, block.positions)
            jobs, settled = await self._admit(block[:count])
            await self._deliver(settled)
            await self.jobs.put(jobs)
            block = block[count:]

    async def _deliver(self, outcomes: Outcomes) -> None:
        """Put outcomes in their queue, in parts while there is no room."""
        while len(outcomes):
            await self.outcomes.wait_for_room()
            outcomes = outcomes[self.outcomes.put_some(outcomes) :]
            if self.outcomes.qsize() >= self._full:
                self._batch_is_due.set()

    async def _work_all(self) -> None:
        async def work(jobs: JobsType) -> None:
            left = len(jobs)

            async def deliver(outcomes: Outcomes) -> None:
                nonlocal left
                await self._deliver(outcomes)
                left -= len(outcomes)
                self._free(len(outcomes))

            await self._work(jobs, deliver)
            assert not left, "each job has one outcome"

        async with asyncio.TaskGroup() as workers:
            while await self.jobs.wait_for_items():
                while self._in_work > self._workers - self._least_free:
                    self._worker_is_free.clear()
                    await self._worker_is_free.wait()
                jobs = self.jobs.take(self._workers - self._in_work)
                self._in_work += len(jobs)
                workers.create_task(work(jobs), name="worker")
        self._workers_ended = True
        self._batch_is_due.set()
        self.outcomes.end()

    def _free(self, count: int) -> None:
        """Let so many more jobs be worked on."""
        self._in_work -= count
        self._worker_is_free.set()

    async def _look_up_all(self, stages: asyncio.TaskGroup) -> None:
        """Batch the outcomes that are ready and look the batch up; batches grow when the writer is slow."""
        while await self.outcomes.wait_for_items():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._linger):
                    await self._batch_is_due.wait()
            self._stalled += SMOOTHING * (self._batch_slots.locked() - self._stalled)
            self._starved += SMOOTHING * (self.jobs.empty() - self._starved)
            await self._batch_slots.acquire()
            batch = self._join(self._take_ready())
            self._batches.put_nowait((batch, stages.create_task(self._look_up(batch))))
        self._batches.put_nowait(None)

    async def _write_all(self) -> None:
        """Write the batches in order."""
        began, cpu_began = time.perf_counter(), self._cpu_seconds()
        while (item := await self._batches.get()) is not None:
            batch, lookup = item
            keys, results = batch.keys, await lookup
            await self._write(batch, results, self._in_progress.find_resume_position(keys))
            self._in_progress.remove(keys)
            self._batch_slots.release()
            seconds, began = time.perf_counter() - began, time.perf_counter()
            cpu, cpu_began = self._cpu_seconds() - cpu_began, self._cpu_seconds()
            self.cores += SMOOTHING * (cpu / seconds - self.cores)

    def _take_ready(self) -> list[Outcomes]:
        """Take the outcomes that are in the queue now, as many as fit into a batch."""
        ready, room = list[Outcomes](), self._batch
        while room and not self.outcomes.empty():
            ready.append(self.outcomes.take(room))
            room -= len(ready[-1])
        if not self._workers_ended and self.outcomes.qsize() < self._full:
            self._batch_is_due.clear()
        return ready
