"""Keeps the passage index in step with the ledger's outbox of passage hashes.

The ledger keeps the passage hashes of a story until a segment that holds them is durable, so a process that is killed
loses none.  The index has them in memory until then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import Numbers
from neardup.core.fingerprint.version import algorithm
from neardup.errors import Fatal, PassagesDamaged
from neardup.index.passages.index import PassageIndex
from neardup.index.passages.postings import Range
from neardup.ledger import Ledger, files, outbox, passages, runs, versions
from neardup.pipeline.index_sync import ledger_id
from neardup.telemetry.log import log

ROWS_PER_READ = 5_000
REPAIRS = 3  # of one question; where the fourth attempt finds damage, the disk fails
FLUSH_STORIES = 50_000  # that are held in memory before a segment is written: about 13 MB

T = TypeVar("T")


async def open_passages(ledger: Ledger) -> PassageIndex:
    """Open the passage index beside a ledger.  Raises Fatal if it does not belong to the ledger's fingerprints."""
    recorded = await ledger.do(runs.get, "fingerprint_version") or algorithm()
    owner, made_by, folder = await ledger_id(ledger), recorded.split()[0], files.passages_folder(ledger.path)
    try:
        await asyncio.to_thread(files.make_folder, folder)
        return await asyncio.to_thread(PassageIndex.open, folder, owner, made_by)
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
                self._held = _size(await self.held())
            else:
                return answer
        return await asyncio.to_thread(question)

    async def _refuse_loss(self) -> None:
        """Raise PassagesDamaged if a segment has gone meanwhile: the answer may lack its stories."""
        held = await self.held()
        if _size(held) < self._held:
            raise PassagesDamaged("a segment that is gone", 1, held[-1][1] if held else 0)
        self._held = _size(held)

    async def held(self) -> list[Range]:
        """The story numbers that the segments hold."""
        return await asyncio.to_thread(lambda: self.index.held)

    async def start(self) -> None:
        """Take the place of the last process that wrote: bring the index in step with the ledger.

        If the ledger was restored from a copy, segments may be newer than it.  They lack stories that were removed or
        changed after the copy, so they are dropped, and their stories are missing.
        """
        for name in await asyncio.to_thread(self.index.made_after, await self._ledger.do(outbox.last_seq)):
            first, last = await asyncio.to_thread(self.index.drop, name)
            log.warning("a segment of the passage index is newer than the ledger", segment=name, first=first, last=last)
        self._held = _size(await self.held())
        await self.catch_up()

    async def catch_up(self) -> None:
        """Insert the stories of the outbox that were committed since the last call."""
        more = True
        while more:
            rows = await self._ledger.do(passages.hashes_after, self._inserted, ROWS_PER_READ)
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
        loop, live = asyncio.get_running_loop(), list[npt.NDArray[np.bool_]]()

        def is_live(numbers: Numbers) -> npt.NDArray[np.bool_]:
            if not live:  # read once, and only if segments are merged
                reading = asyncio.run_coroutine_threadsafe(self._ledger.do(versions.live_numbers), loop)
                live.append(reading.result())
            return live[0][numbers]

        made_at = await self._ledger.do(outbox.last_seq)
        while not stop.is_set() and await self.ask(lambda: self.index.merge(is_live, made_at)):
            pass

    async def flush(self, first: int, last: int) -> None:
        """Make a segment of the stories with these numbers, all of which are in memory."""
        made_at = await self._ledger.do(outbox.last_seq)
        await asyncio.to_thread(self.index.flush, first, last, made_at)

    async def _flush(self) -> None:
        """Write the stories in memory to a durable segment, and delete them from the outbox."""
        if not self._in_memory:
            return
        first, last = await self._ledger.do(passages.flushed_number) + 1, self._inserted
        # a segment that was written just before a process was killed is not recorded as flushed
        for start, stop in await self.held():
            if start <= first <= stop:
                first = stop + 1
        if first <= last:
            await self.flush(first, last)
        await self._ledger.do(passages.prune_hashes, last)
        self._in_memory = 0


def _size(ranges: Sequence[Range]) -> int:
    return sum(last - first + 1 for first, last in ranges)
