"""Reads again the pages of the stories whose passage hashes are missing, and of no others.

Hashes are missing if a segment of the passage index was damaged or lost, or if the ledger or the index was restored
from a copy.  What has been read becomes segments at once, so a reading that is interrupted resumes where it stopped.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np

from neardup.config import Run as RunSection
from neardup.core.columns import StoryColumns
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.index.passages.postings import Row
from neardup.ledger import Ledger, passages
from neardup.ledger.passages import MissingStory
from neardup.pages.limits import CircuitBreaker
from neardup.pages.reader_pool import ReaderPool
from neardup.pages.results import NotModified, PageResult, PagesRead, ReadFailed, ReadPages
from neardup.pages.text_cache import RETRIABLE
from neardup.pipeline.passage_sync import FLUSH_STORIES, PassageSync
from neardup.records import Story
from neardup.telemetry.log import log
from neardup.telemetry.metrics import PASSAGES_READ_AGAIN

STORIES_AT_A_TIME = 500  # whose pages are read before the next ones are begun
READ, CHANGED = "read", "changed"
NO_HASHES = np.empty(0, np.uint32)


class PassageReading:
    """Fills the gaps of a passage index that the calling process may write; `counts` has the results by name.

    `read` reads pages, and raises StoreDown if the store fails.
    """

    @classmethod
    def of_pool(cls, sync: PassageSync, ledger: Ledger, readers: ReaderPool, section: RunSection) -> Self:
        """A reading by a reader pool, which the circuit breaker of [run] ends."""
        return cls(sync, ledger, CircuitBreaker(readers.read_all, section.breaker_share, section.breaker_after))

    def __init__(self, sync: PassageSync, ledger: Ledger, read: ReadPages) -> None:
        self.counts: Counter[str] = Counter()
        self._sync = sync
        self._ledger = ledger
        self._read = read

    async def missing(self) -> int:
        """How many stories are missing, counted to MOST_COUNTED."""
        return await self._ledger.do(passages.count_missing, await self._sync.held())

    async def run(self, stop: asyncio.Event, advance: Callable[[int], None] = lambda done: None) -> bool:
        """Read until nothing is missing or `stop` is set; returns whether it was not.

        `advance` is called with the number of stories done.

        A story whose text has changed, or that has no text any more, is left to the run that lists it.  A story at
        which the store failed stays missing, so that the next call tries again.  Raises StoreDown and Fatal.
        """
        await self._sync.catch_up()
        before, held = self.counts.copy(), await self._sync.held()
        if missing := await self.missing():
            log.warning("the passage index lacks stories; their pages are read again", stories=missing)
        for first, last in await self._ledger.do(passages.gaps, held):
            end = last if held and last < held[-1][1] else None
            if stop.is_set() or not await self._fill(first, last, end, stop, advance):
                break
        if results := self.counts - before:
            log.info("pages were read again", **results)
        return not stop.is_set()

    async def _fill(
        self, first: int, last: int, end: int | None, stop: asyncio.Event, advance: Callable[[int], None]
    ) -> bool:
        """Read the missing stories of a gap; False if `stop` was set before the end.

        The gap becomes segments up to `end`, or if that is None up to the last story that was read: later ones may be
        committed meanwhile.
        """
        unwritten, after, in_memory = first, first - 1, 0
        while stories := await self._ledger.do(passages.next_missing, after + 1, last, STORIES_AT_A_TIME):
            results = await self._read_all([one.story for one in stories], stop)
            if results is None:
                await self._flush(unwritten, after)
                return False
            rows = [self._row(one, result) for one, result in zip(stories, results, strict=True)]
            await asyncio.to_thread(self._sync.index.insert, [row for row in rows if row is not None])
            for number in (one.number for one, row in zip(stories, rows, strict=True) if row is None):
                await self._flush(unwritten, number - 1)
                unwritten = number + 1
            after, in_memory = stories[-1].number, in_memory + len(stories)
            if in_memory >= FLUSH_STORIES:
                await self._flush(unwritten, after)
                unwritten, in_memory = after + 1, 0
            advance(self.counts.total())
        await self._flush(unwritten, after if end is None else end)
        return True

    async def _read_all(self, stories: Sequence[Story], stop: asyncio.Event) -> list[PageResult] | None:
        """Read pages; None if `stop` is set before the last is read."""
        if stop.is_set():
            return None
        results = dict[int, PageResult]()

        async def keep(read: PagesRead) -> None:
            results.update((story_id, read.pages.page(n)) for n, story_id in enumerate(read.stories.ids))
            results.update((story.id, result) for story, result in read.others)

        reading = asyncio.create_task(self._read(StoryColumns.of(stories), [None] * len(stories), keep))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                return None
            reading.result()
            return [results[story.id] for story in stories]
        finally:
            stopping.cancel()
            reading.cancel()

    def _row(self, missing: MissingStory, result: PageResult) -> Row | None:
        """The row for the index, without hashes if the text on record is gone; None if the store failed."""
        match result:
            case PageFingerprinted(fingerprint) if fingerprint.text_hash == missing.text_hash:
                self._count(READ)
                return missing.number, np.frombuffer(fingerprint.passages, np.uint32)
            case PageFingerprinted():
                self._count(CHANGED)
            case Unreadable(reason):
                self._count(reason)
            case ReadFailed(reason, error):
                self._count(reason)
                log.warning("a page could not be read again for its passages", story=missing.story.id, why=error)
                return None if reason in RETRIABLE else (missing.number, NO_HASHES)
            case NotModified():
                raise AssertionError("without an ETag a page is always read")
        return missing.number, NO_HASHES

    def _count(self, result: str) -> None:
        self.counts[result] += 1
        PASSAGES_READ_AGAIN.labels(result).inc()

    async def _flush(self, first: int, last: int) -> None:
        """Make a segment, unless the range is empty."""
        if first <= last:
            await self._sync.catch_up()  # the outbox may have some of these stories
            await self._sync.flush(first, last)
