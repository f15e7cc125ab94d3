"""Law: whatever await point a call is cancelled at, the next run ends as an undisturbed run does.

The ledger holds whole batches only, the index is never ahead of it, and all connections remain usable.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from neardup.core.candidates.banding import Banding
from neardup.core.columns import Outcomes
from neardup.core.languages import LANGUAGES
from neardup.index.protocol import Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.ledger import Ledger, outbox, stories
from neardup.pipeline.index_sync import catch_up
from neardup.records import Fingerprinted, Story

from tests.support.builders import fingerprint_of
from tests.support.faults.consistency import index_faults
from tests.support.languages import CODES, HINDI
from tests.support.passages import writer_of
from tests.support.sampling import CHAOS


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


STRIDE = 1 if CHAOS > 1 else 6  # between the await points at which work is cancelled
INDEXES = ("sqlite", "documented", "compact")
BANDINGS = dict.fromkeys(LANGUAGES, Banding())
BATCH_SIZES = (4, 3, 2)  # each batch holds copies of its own stories and of those in the batch before
Batch = list[Fingerprinted]
Work = Callable[[Ledger, Index], Coroutine[Any, Any, None]]


def batch(first: int, size: int) -> Batch:
    return [
        Fingerprinted(Story(n, HINDI), fingerprint_of((n % 3).to_bytes(16), bytes([n % 3]) * 64), None)
        for n in range(first, first + size)
    ]


BATCHES = [batch(sum(BATCH_SIZES[:n]), size) for n, size in enumerate(BATCH_SIZES)]


async def write(ledger: Ledger, index: Index) -> None:
    """Write the batches that the ledger lacks, as a run does."""
    await catch_up(index, ledger, "v")
    ids = [outcome.story.id for batch in BATCHES for outcome in batch if isinstance(outcome.story, Story)]
    known = await ledger.do(stories.read_stored_versions, ids)
    async with await writer_of(ledger, index) as writer:
        for outcomes in BATCHES:
            recorded = [outcome.story.id in known for outcome in outcomes if isinstance(outcome.story, Story)]
            assert all(recorded) or not any(recorded), "the ledger holds a part of a batch"
            if not all(recorded):
                block = Outcomes.of(outcomes)
                await writer.write(block, await writer.look_up(block), 0)


async def commit(ledger: Ledger) -> None:
    for outcomes in BATCHES:
        await ledger.do(stories.commit, stories.Batch(Outcomes.of(outcomes), (), 1, {}, None))


async def apply(ledger: Ledger, index: Index) -> None:
    """Bring the index, which lacks all batches, to the ledger's last change."""
    await catch_up(index, ledger, "v")


async def look_up(ledger: Ledger, index: Index) -> None:
    await catch_up(index, ledger, "v")
    held = [change.new for change in await ledger.do(outbox.list_changes, 0, 100) if change.new]
    assert all(len(found.ids) + len(found.numbers) for found in (await index.look_up(held))[1])


class Scenario:
    """A new ledger and a new index."""

    def __init__(self, kind: str, folder: Path, redis_url: str) -> None:
        folder.mkdir()
        self.kind, self.url, self.path = kind, redis_url, folder / "neardup.db"

    async def play(self, work: Work, cancel_at: int, *, committed: bool) -> tuple[bool, set[tuple[int, int]]]:
        """Returns whether the work was cancelled, and the pairs nominated by the end of the next run."""
        ledger, index = Ledger(self.path), await self._open()
        try:
            await catch_up(index, ledger, "v")
            if committed:
                await commit(ledger)
            cancelled = await AwaitPoints(cancel_at).run(work(ledger, index))
            applied, last = (await index.read_position()).applied, await ledger.do(outbox.read_last_seq)
            assert applied is None or applied <= last, f"the index is ahead: {applied}, the ledger is at {last}"
            await work(ledger, index)
            assert index_faults(self.path, self.kind, self.url) == []
            return cancelled, set(await ledger.do(lambda db: db.execute("SELECT a, b FROM candidates").fetchall()))
        finally:
            await index.close()
            ledger.close()

    async def _open(self) -> Index:
        if self.kind == "sqlite":
            return SqliteIndex(self.path, BANDINGS)
        with redis.Redis.from_url(self.url) as client:
            client.flushall()
        return await open_redis(self.url, BANDINGS, CODES, "compact" if self.kind == "compact" else "documented")


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize(("work", "committed"), [(write, False), (apply, True), (look_up, True)])
def test_the_next_run_finishes_work_cancelled_at_any_await_point(
    work: Work, committed: bool, kind: str, tmp_path: Path, redis_url: str
) -> None:
    _, undisturbed = asyncio.run(Scenario(kind, tmp_path / "undisturbed", redis_url).play(work, 0, committed=committed))
    for point in count(random.randint(1, STRIDE), STRIDE):
        scenario = Scenario(kind, tmp_path / f"{point}", redis_url)
        cancelled, pairs = asyncio.run(scenario.play(work, point, committed=committed))
        assert pairs == undisturbed, f"cancelled at await point {point}"
        if not cancelled:
            break
    assert point > 3, f"only {point - 1} await points: nothing was cancelled midway"
