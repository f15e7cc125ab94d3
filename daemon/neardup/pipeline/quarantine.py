"""Quarantine of stories whose pages may have killed the daemon.

A story whose page a running reader process had computed at a high cost when the daemon died is read alone from then
on.  If the daemon dies again, the story is put into quarantine: it is a dead letter, and its page is not read.

A file beside the ledger, which outlives the daemon, has the stories whose pages are being computed.  It is a shared
memory map: that survives the process that wrote it, though not a power cut, which is no story's fault; and a write to
it takes a microsecond, where a row in the ledger takes a commit.
"""

import asyncio
import mmap
import os
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Self

from neardup.core.columns import StoryColumns
from neardup.errors import Fatal
from neardup.ledger import Ledger, dead_letters
from neardup.pages.reader_pool import PROCESSES, ReaderPool
from neardup.pages.results import Deliver, PageResult, PagesRead, ReadFailed, make_results
from neardup.records import Dead, Story

WORD_BYTES = 8
MAX_DEATHS = 2
RECORD_SECONDS = 0.1  # between two updates of the record


class Quarantine:
    """Reads pages with `readers`, except those in quarantine.

    An async context manager.  While it is open, the costly stories of `readers` are kept on record as in flight.  A
    story in quarantine is read again if its `updated_at` has changed, or if `retry` is set.
    """

    def __init__(self, ledger: Ledger, readers: ReaderPool, *, retry: bool) -> None:
        self._ledger = ledger
        self._readers = readers
        self._retry = retry
        self._deaths: Mapping[int, int] = {}
        self._quarantined: Mapping[int, Story] = {}
        self._suspects: AbstractSet[int] = set()
        self._suspect_turn = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Record which stories were in flight if the last run died.  Raises Fatal."""
        self._in_flight = InFlight(self._ledger.path, PROCESSES)
        if self._in_flight.interrupted:
            await self._ledger.do(dead_letters.add_interrupted, self._in_flight.interrupted)
        self._deaths = await self._ledger.do(dead_letters.count_interruptions)
        self._quarantined = await self._ledger.do(dead_letters.read_quarantined)
        self._suspects = self._deaths.keys() | self._quarantined.keys()
        self._recording = asyncio.create_task(self._keep_record(), name="in flight")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._recording.cancel()
        self._in_flight.close()

    async def _keep_record(self) -> None:
        while True:
            self._in_flight.replace(self._readers.costly_stories)
            await asyncio.sleep(RECORD_SECONDS)

    async def read_all(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        """Read pages, those of suspects each alone; ReadFailed for a story in quarantine.

        While a suspect waits to be read alone, no other pages are begun here, so that its turn comes.  The pages that
        the verification reads, for which those under way may wait, are not read through here.
        """

        async def release(read: PagesRead) -> None:
            self._in_flight.remove(read.ids)
            await deliver(read)

        async with self._suspect_turn:
            pass
        suspects = [n for n, story_id in enumerate(stories.ids) if story_id in self._suspects]
        if not suspects:
            await self._readers.read_all(stories, etags, release)
            return
        if others := [n for n in range(len(stories)) if n not in suspects]:
            await self._readers.read_all(stories.take(others), [etags[n] for n in others], release)
        for n in suspects:
            await self._read_suspect(stories.story(n), etags[n], release)

    async def _read_suspect(self, story: Story, etag: str | None, deliver: Deliver) -> None:
        deaths, quarantined = self._deaths.get(story.id, 0), self._quarantined.get(story.id)
        if deaths >= MAX_DEATHS:
            result: PageResult = _make_refusal(
                f"it was in flight at {deaths} deaths of the daemon, at the last one alone"
            )
        elif quarantined is not None and quarantined.updated_at == story.updated_at and not self._retry:
            result = _make_refusal("it stays in quarantine until its updated_at changes, or `neardup retry` names it")
        else:
            async with self._suspect_turn:
                result = await self._readers.read(story, etag, alone=True)
        await deliver(make_results([(story, result)]))


def _make_refusal(why: str) -> ReadFailed:
    return ReadFailed(Dead.QUARANTINED, why)


class InFlight:
    """A record of at most `most` stories at a time.

    `interrupted` are the stories that were on record when the previous daemon died.  The file no longer contains them,
    so that each death counts once: the caller must save them.
    """

    def __init__(self, ledger: Path, most: int) -> None:
        """Raises Fatal if the disk has no space for the file."""
        self._path = ledger.with_name(ledger.name + ".reading")
        size = most * WORD_BYTES
        try:
            with os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o640), "r+b") as file:
                self.interrupted = _parse_record(file.read())
                file.truncate(0)
                os.posix_fallocate(file.fileno(), 0, size)  # without it, a full disk would be a SIGBUS later
                self._map = mmap.mmap(file.fileno(), size)
        except OSError as error:
            raise Fatal(f"cannot write {self._path}: {error.strerror}") from error
        self._words = memoryview(self._map).cast("Q")  # of stories, see _make_word, or 0

    def replace(self, stories: Collection[int]) -> None:
        """Keep these stories on record, and no others."""
        for slot, word in enumerate([*map(_make_word, stories), *[0] * (len(self._words) - len(stories))]):
            self._words[slot] = word

    def remove(self, stories: Collection[int]) -> None:
        """Remove those of these stories that are on record."""
        for slot, word in enumerate(self._words):
            if word and _read_word(word) in stories:
                self._words[slot] = 0

    def close(self) -> None:
        """Remove the record: no story is in flight."""
        self._words.release()
        self._map.close()
        self._path.unlink(missing_ok=True)


def _parse_record(record: bytes) -> list[int]:
    words = memoryview(record[: len(record) // WORD_BYTES * WORD_BYTES]).cast("Q")
    return [_read_word(word) for word in words if word]


def _make_word(story_id: int) -> int:
    """The id of a story, a work's as well, in 64 bits; 0 is that of none."""
    return (story_id + 1) % (1 << 64)


def _read_word(word: int) -> int:
    return word - 1 if word <= 1 << 63 else word - 1 - (1 << 64)
