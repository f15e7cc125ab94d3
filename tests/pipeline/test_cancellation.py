"""Law: at whatever await point a call is cancelled, the ledger holds whole batches, the index is never ahead of it, all
connections can be used, and the next run ends where an undisturbed one does.
"""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import redis
from neardup.config import Detection
from neardup.core.candidates.banding import Banding
from neardup.index.protocol import Index
from neardup.index.redis import open_redis
from neardup.index.sqlite import SqliteIndex
from neardup.languages import LANGUAGES
from neardup.ledger import Ledger, changes, stories
from neardup.pipeline.index_sync import catch_up
from neardup.pipeline.index_wait import IndexWait
from neardup.pipeline.summary import Counts
from neardup.pipeline.writer import Writer
from neardup.records import Fingerprinted, Story

from tests.support.await_points import AwaitPoints
from tests.support.builders import fingerprint_of
from tests.support.faults.consistency import index_faults
from tests.support.languages import CODES, HINDI

INDEXES = ("sqlite", "documented", "compact")
BANDINGS = dict.fromkeys(LANGUAGES, Banding())
SIZES = (4, 3, 2)  # of the batches; each holds copies of stories of its own and of the batch before
Batch = list[Fingerprinted]
Work = Callable[[Ledger, Index], Coroutine[Any, Any, None]]


def batch(first: int, size: int) -> Batch:
    return [
        Fingerprinted(Story(n, HINDI), fingerprint_of((n % 3).to_bytes(16), bytes([n % 3]) * 64), None)
        for n in range(first, first + size)
    ]


BATCHES = [batch(sum(SIZES[:n]), size) for n, size in enumerate(SIZES)]


async def write(ledger: Ledger, index: Index) -> None:
    """Write the batches that the ledger lacks, as a run does."""
    await catch_up(index, ledger, "v")
    ids = [one.story.id for batch in BATCHES for one in batch if isinstance(one.story, Story)]
    known = await ledger.do(stories.known_many, ids)
    async with Writer(
        ledger,
        index,
        Detection(),
        "v",
        index_wait=IndexWait(ledger),
        run_id=1,
        counts=Counts(),
        standing=dict,
        checkpoint=lambda _: None,
        committed=lambda: None,
    ) as writer:
        for outcomes in BATCHES:
            have = [one.story.id in known for one in outcomes if isinstance(one.story, Story)]
            assert all(have) or not any(have), "the ledger holds a part of a batch"
            if not all(have):
                await writer.write(outcomes, await writer.look_up(outcomes), 0)


async def commit(ledger: Ledger) -> None:
    for outcomes in BATCHES:
        await ledger.do(stories.commit, stories.Batch(outcomes, (), 1, {}, None))


async def apply(ledger: Ledger, index: Index) -> None:
    """Bring the index, which lacks all batches, to the ledger's last change."""
    await catch_up(index, ledger, "v")


async def look_up(ledger: Ledger, index: Index) -> None:
    await catch_up(index, ledger, "v")
    held = [change.new for change in await ledger.do(changes.after, 0, 100) if change.new]
    assert all(len(found.ids) + len(found.numbers) for found in (await index.lookup(held))[1])


class Scene:
    """A ledger and an index of their own."""

    def __init__(self, kind: str, folder: Path, redis_url: str) -> None:
        folder.mkdir()
        self.kind, self.url, self.path = kind, redis_url, folder / "neardup.db"

    async def play(self, work: Work, cancel_at: int, *, committed: bool) -> tuple[bool, set[tuple[int, int]]]:
        """Whether the work was cancelled, and the pairs that were nominated when the next run had ended."""
        ledger, index = Ledger(self.path), await self._open()
        try:
            await catch_up(index, ledger, "v")
            if committed:
                await commit(ledger)
            cancelled = await AwaitPoints(cancel_at).run(work(ledger, index))
            applied, last = (await index.position()).applied, await ledger.do(changes.last_seq)
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
def test_work_cancelled_at_any_await_point_is_finished_by_the_next_run(
    work: Work, committed: bool, kind: str, tmp_path: Path, redis_url: str
) -> None:
    _, undisturbed = asyncio.run(Scene(kind, tmp_path / "undisturbed", redis_url).play(work, 0, committed=committed))
    for point in count(1):
        scene = Scene(kind, tmp_path / f"{point}", redis_url)
        cancelled, pairs = asyncio.run(scene.play(work, point, committed=committed))
        assert pairs == undisturbed, f"cancelled at await point {point}"
        if not cancelled:
            break
    assert point > 3, f"only {point - 1} await points: nothing was cut short midway"
