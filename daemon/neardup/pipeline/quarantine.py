"""Quarantine of stories whose pages may have killed the daemon.

A story whose page a running reader process had computed at a high cost when the daemon died is read alone from then
on.  If the daemon dies again, the story is put into quarantine: it is a dead letter, and its page is not read.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol, Self

from neardup.core.columns import StoryColumns
from neardup.ledger import Ledger, dead_letters
from neardup.pages.in_flight import InFlight
from neardup.pages.reader_pool import PROCESSES
from neardup.pages.results import Deliver, PageResult, PagesRead, ReadFailed, results_of
from neardup.records import Dead, Story

MAX_DEATHS = 2
RECORD_SECONDS = 0.1  # between two updates of the record


class Readers(Protocol):
    """What reads pages: a reader pool."""

    async def read_all(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver, /) -> None: ...
    async def read(self, story: Story, etag: str | None, *, alone: bool) -> PageResult: ...


class Quarantine:
    """Reads pages with `readers`, except those in quarantine.

    An async context manager.  `costly_stories` returns the stories that are on record as in flight from then on.  A
    story in quarantine is read again if it was edited since, or if `retry` is set.
    """

    def __init__(
        self,
        ledger: Ledger,
        readers: Readers,
        costly_stories: Callable[[], Collection[int]],
        *,
        retry: bool,
    ) -> None:
        self._ledger = ledger
        self._readers = readers
        self._costly_stories = costly_stories
        self._retry = retry
        self._deaths: Mapping[int, int] = {}
        self._quarantined: Mapping[int, Story] = {}
        self._suspects: AbstractSet[int] = set()

    async def __aenter__(self) -> Self:
        """Record which stories were in flight if the last run died.  Raises Fatal."""
        self._in_flight = InFlight(self._ledger.path, PROCESSES)
        if self._in_flight.interrupted:
            await self._ledger.do(dead_letters.add_interrupted, self._in_flight.interrupted)
        self._deaths = await self._ledger.do(dead_letters.interrupted)
        self._quarantined = await self._ledger.do(dead_letters.quarantined_stories)
        self._suspects = self._deaths.keys() | self._quarantined.keys()
        self._recording = asyncio.create_task(self._keep_record(), name="in flight")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._recording.cancel()
        self._in_flight.close()

    async def _keep_record(self) -> None:
        while True:
            self._in_flight.replace(self._costly_stories())
            await asyncio.sleep(RECORD_SECONDS)

    async def read_all(self, stories: StoryColumns, etags: Sequence[str | None], deliver: Deliver) -> None:
        """Read pages, those of suspects each alone; ReadFailed for a story in quarantine."""

        async def release(read: PagesRead) -> None:
            self._in_flight.remove(read.ids)
            await deliver(read)

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
            result: PageResult = _refusal(f"it was in flight at {deaths} deaths of the daemon, at the last one alone")
        elif quarantined is not None and quarantined.updated_at == story.updated_at and not self._retry:
            result = _refusal("it stays in quarantine until it is edited, or `neardup retry` names it")
        else:
            result = await self._readers.read(story, etag, alone=True)
        await deliver(results_of([(story, result)]))


def _refusal(why: str) -> ReadFailed:
    return ReadFailed(Dead.QUARANTINED, why)
