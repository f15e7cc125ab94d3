"""Keeps the passage index in step with the ledger, and whole.

The ledger keeps the passage hashes of a story in an outbox until a segment that holds them is durable, so a process
that is killed loses none.  The index has them in memory until then.

Hashes are missing if a segment was damaged or lost, or if the ledger or the index was restored from a copy.  The pages
of the stories concerned, and of no others, are then read again.  What has been read becomes segments at once, so a
reading that is interrupted resumes where it stopped.

Every block of a segment has a checksum, which is compared before the block is used.  So a lookup that succeeds has seen
a whole index, and one that fails is repeated after the repair, which removes the damaged segment and reads its stories
again: damage loses no pair.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Self, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from neardup.config import Run as RunSection
from neardup.core.candidates.banding import Numbers
from neardup.core.columns import StoryColumns
from neardup.core.fingerprint.version import algorithm
from neardup.core.page import PageFingerprinted, Unreadable
from neardup.errors import Fatal, PassagesDamaged
from neardup.index.passages.folder import Damage
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import Range, Row
from neardup.ledger import Ledger, files, outbox, passages, removed_texts, runs, versions
from neardup.ledger.passages import MissingStory
from neardup.pages.limits import CircuitBreaker
from neardup.pages.results import NotModified, PageResult, PagesRead, ReadFailed, ReadPages
from neardup.pages.text_cache import RETRIABLE
from neardup.pipeline.index_sync import read_ledger_id
from neardup.records import Story
from neardup.telemetry.log import log
from neardup.telemetry.metrics import PASSAGE_DAMAGE, PASSAGES_READ_AGAIN

if TYPE_CHECKING:
    from neardup.pages.reader_pool import ReaderPool

ROWS_PER_READ = 5_000
REPAIRS = 3  # of one question; where the fourth attempt finds damage, the disk fails
FLUSH_STORIES = 50_000  # that are held in memory before a segment is written: about 13 MB
T = TypeVar("T")
STORIES_AT_A_TIME = 500  # whose pages are read before the next ones are begun
READ, CHANGED = "read", "changed"  # results of reading a page again; the others are reasons of failures
NO_HASHES = np.empty(0, np.uint32)


async def open_passages(ledger: Ledger) -> PassageIndex:
    """Open the passage index beside a ledger.  Raises Fatal if it does not belong to the ledger's fingerprints."""
    recorded = await ledger.do(runs.get, "fingerprint_version") or algorithm()
    owner, made_by, folder = await read_ledger_id(ledger), recorded.split()[0], files.name_passages_folder(ledger.path)
    try:
        await asyncio.to_thread(files.make_folder, folder)
        return await asyncio.to_thread(PassageIndex, folder, owner, made_by)
    except OSError as error:
        raise Fatal(f"cannot open the passage index {folder}: {error.strerror}") from error


class PassageSync:
    """Brings a passage index in step with the ledger.  Only the process that holds the lock writes segments.

    A run sets `repair`, which repairs the damage that a question finds.
    """

    repair: Callable[[PassagesDamaged], Awaitable[None]] | None = None

    def __init__(self, index: PassageIndex, ledger: Ledger) -> None:
        self.index = index
        self._ledger = ledger
        self._held = 0  # story numbers in segments, when last looked at
        self._inserted = 0  # the last story number that was inserted
        self._in_memory = 0  # stories

    async def ask(self, question: Callable[[], T]) -> T:
        """Ask the index in a thread, again after a repair if it is damaged.  Raises PassagesDamaged."""
        for _ in range(REPAIRS if self.repair else 0):
            try:
                answer = await asyncio.to_thread(question)
                await self._refuse_loss()
            except PassagesDamaged as damage:
                assert self.repair is not None
                await self.repair(damage)
                self._held = _count(await self.list_held_ranges())
            else:
                return answer
        return await asyncio.to_thread(question)

    async def _refuse_loss(self) -> None:
        """Raise PassagesDamaged if a segment has gone meanwhile: the answer may lack its stories."""
        held = await self.list_held_ranges()
        if _count(held) < self._held:
            raise PassagesDamaged("a segment that is gone", 1, held[-1][1] if held else 0)
        self._held = _count(held)

    async def list_held_ranges(self) -> list[Range]:
        """The story numbers that the segments hold."""
        return await asyncio.to_thread(lambda: self.index.held)

    async def start(self) -> None:
        """Take the place of the last process that wrote: bring the index in step with the ledger.

        If the ledger was restored from a copy, segments may be newer than it.  They lack stories that were removed or
        changed after the copy, so they are dropped, and their stories are missing.
        """
        for name in await asyncio.to_thread(self.index.list_made_after, await self._ledger.do(outbox.read_last_seq)):
            first, last = await asyncio.to_thread(self.index.drop, name)
            log.warning("a segment of the passage index is newer than the ledger", segment=name, first=first, last=last)
        self._held = _count(await self.list_held_ranges())
        await self.catch_up()

    async def catch_up(self) -> None:
        """Insert the stories of the outbox that were committed since the last call."""
        more = True
        while more:
            rows = await self._ledger.do(passages.list_hashes, self._inserted, ROWS_PER_READ)
            more = len(rows) == ROWS_PER_READ
            if rows:
                decoded = [(number, np.frombuffer(hashes, np.uint32)) for number, hashes in rows]
                await asyncio.to_thread(self.index.insert, decoded)
                self._inserted = rows[-1][0]
                self._in_memory += len(rows)

    def begin_again(self) -> None:
        """Let the next call insert the whole outbox again: the index may have taken damage for some of its stories."""
        self._inserted = self._in_memory = 0

    async def keep_up(self) -> None:
        """Insert what was committed since the last call, and write a segment if much is in memory."""
        await self.catch_up()
        if self._in_memory >= FLUSH_STORIES:
            await self._flush()

    async def settle(self, stop: asyncio.Event) -> None:
        """Write what is in memory to a segment, and merge segments until none is due or `stop` is set."""
        await self.catch_up()
        await self._flush()
        await self.keep_removed()
        loop, live = asyncio.get_running_loop(), list[npt.NDArray[np.bool_]]()

        def is_live(numbers: Numbers) -> npt.NDArray[np.bool_]:
            if not live:  # read once, and only if segments are merged
                reading = asyncio.run_coroutine_threadsafe(self._ledger.do(versions.mask_live_numbers), loop)
                live.append(reading.result())
            return live[0][numbers]

        made_at = await self._ledger.do(outbox.read_last_seq)
        while not stop.is_set() and await self.ask(lambda: self.index.merge(is_live, made_at)):
            pass

    async def keep_removed(self) -> None:
        """Record the passage hashes of the texts that were removed as plagiarism, before a merge drops them."""
        if numbers := await self._ledger.do(removed_texts.list_without_passages):
            held = await self.ask(lambda: self.index.read_hashes(numbers))
            await self._ledger.do(removed_texts.put_passages, held)

    async def flush(self, first: int, last: int) -> None:
        """Make a segment of the stories with these numbers, all of which are in memory."""
        made_at = await self._ledger.do(outbox.read_last_seq)
        await asyncio.to_thread(self.index.flush, first, last, made_at)

    async def _flush(self) -> None:
        """Write the stories in memory to a durable segment, and delete them from the outbox."""
        if not self._in_memory:
            return
        first, last = await self._ledger.do(passages.read_flushed_number) + 1, self._inserted
        # a segment that was written just before a process was killed is not recorded as flushed
        for start, stop in await self.list_held_ranges():
            if start <= first <= stop:
                first = stop + 1
        if first <= last:
            await self.flush(first, last)
        await self._ledger.do(passages.prune_hashes, last)
        self._in_memory = 0


def _count(ranges: Sequence[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)


class PassageReading(Struct):
    """Fills the gaps of a passage index that the calling process may write; `counts` has the results by name.

    `read` reads pages, and raises StoreDown if the store fails.
    """

    sync: PassageSync
    ledger: Ledger
    read: ReadPages
    counts: Counter[str] = field(default_factory=Counter)
    repairing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of_pool(cls, sync: PassageSync, ledger: Ledger, readers: "ReaderPool", section: RunSection) -> Self:
        """A reading by a reader pool, which the circuit breaker of [run] ends."""
        return cls(sync, ledger, CircuitBreaker(readers.read_all, section.breaker_share, section.breaker_after))

    async def count_missing(self) -> int:
        """How many stories are missing, counted to MOST_COUNTED."""
        return await self.ledger.do(passages.count_missing, await self.sync.list_held_ranges())

    async def run(self, stop: asyncio.Event, advance: Callable[[int], None] = lambda done: None) -> bool:
        """Read until nothing is missing or `stop` is set; returns whether it was not.

        `advance` is called with the number of stories done.

        A story whose text has changed, or that has no text any more, is left to the run that lists it.  A story at
        which the store failed stays missing, so that the next call tries again.  Raises StoreDown and Fatal.
        """
        await self.sync.catch_up()
        before, held = self.counts.copy(), await self.sync.list_held_ranges()
        if missing := await self.count_missing():
            log.warning("the passage index lacks stories; their pages are read again", stories=missing)
        for first, last in await self.ledger.do(passages.find_gaps, held):
            end = last if held and last < held[-1][1] else None
            if stop.is_set() or not await self._fill(first, last, end, stop, advance):
                break
        if results := self.counts - before:
            log.info("pages were read again", **results)
        return not stop.is_set()

    async def mend(self, stop: asyncio.Event, show: Callable[[int, int], None]) -> bool:
        """Bring the index in step with its ledger, compare every checksum, and read again what is damaged or missing.

        `show` is called with the number of stories that are done and how many were missing.  Returns whether `stop` was
        not set before the end.
        """
        await self.sync.start()
        for damage in await asyncio.to_thread(lambda: list(self.sync.index.check())):
            await drop_damaged_segment(self.sync.index, damage)
        if missing := await self.count_missing():
            show(0, missing)
        return await self.run(stop, lambda done: show(done, missing))

    async def repair(self, damage: PassagesDamaged) -> None:
        """Remove the segment and read its stories again; returns when that is done, by any task.

        The stories are read even if the run is to stop: it stops at the latest when its grace period is over, and does
        not write what it could not look up.
        """
        async with self.repairing:
            await drop_damaged_segment(self.sync.index, damage)
            self.sync.begin_again()
            await self.run(asyncio.Event())

    async def _fill(
        self, first: int, last: int, end: int | None, stop: asyncio.Event, advance: Callable[[int], None]
    ) -> bool:
        """Read the missing stories of a gap; False if `stop` was set before the end.

        The gap becomes segments up to `end`, or if that is None up to the last story that was read: later ones may be
        committed meanwhile.
        """
        unwritten, after, in_memory = first, first - 1, 0
        while stories := await self.ledger.do(passages.list_next_missing, after + 1, last, STORIES_AT_A_TIME):
            results = await self._read_all([missing.story for missing in stories], stop)
            if results is None:
                await self._flush(unwritten, after)
                return False
            rows = [self._make_row(missing, result) for missing, result in zip(stories, results, strict=True)]
            await asyncio.to_thread(self.sync.index.insert, [row for row in rows if row is not None])
            for number in (missing.number for missing, row in zip(stories, rows, strict=True) if row is None):
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

        reading = asyncio.create_task(self.read(StoryColumns.of(stories), [None] * len(stories), keep))
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

    def _make_row(self, missing: MissingStory, result: PageResult) -> Row | None:
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
                log.warning(
                    "a page could not be read again for its passages",
                    story=missing.story.path or missing.story.id,
                    why=error,
                )
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
            await self.sync.catch_up()  # the outbox may have some of these stories
            await self.sync.flush(first, last)


async def drop_damaged_segment(index: PassageIndex, damage: PassagesDamaged | Damage) -> None:
    """Remove a damaged segment, unless that has been done; its stories are missing from then on.

    Only the process that writes the index may call it.
    """
    if damage.segment not in {path.name for path in await asyncio.to_thread(index.list_files)}:
        return
    await asyncio.to_thread(index.drop, damage.segment)
    PASSAGE_DAMAGE.inc()
    log.warning(
        "a segment of the passage index is damaged; its stories are read again",
        segment=damage.segment,
        first=damage.first,
        last=damage.last,
    )
