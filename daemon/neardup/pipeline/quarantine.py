"""Quarantine of stories whose pages may have killed the daemon.

A story whose page a running reader process had computed at a high cost when the daemon died is read alone from then
on.  If the daemon dies again, the story is put into quarantine: it is a dead letter, and its page is not read.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Self

from neardup.ledger import Ledger, dead_letters
from neardup.pages.in_flight import InFlight
from neardup.pages.reader_pool import PROCESSES
from neardup.pages.results import PageResult, ReadFailed
from neardup.records import Dead, Story

MAX_DEATHS = 2
RECORD_SECONDS = 0.1  # between two updates of the record


class Quarantine:
    """Reads pages with `read`, the method of a reader pool, except those in quarantine.

    An async context manager.  `costly_stories` returns the stories that are on record as in flight from then on.  A
    story in quarantine is read again if it was edited since, or if `retry` is set.
    """

    def __init__(
        self,
        ledger: Ledger,
        read: Callable[..., Awaitable[PageResult]],
        costly_stories: Callable[[], Collection[int]],
        *,
        retry: bool,
    ) -> None:
        self._ledger = ledger
        self._read = read
        self._costly_stories = costly_stories
        self._retry = retry
        self._deaths: Mapping[int, int] = {}
        self._quarantined: Mapping[int, Story] = {}

    async def __aenter__(self) -> Self:
        """Record which stories were in flight if the last run died.  Raises Fatal."""
        self._in_flight = InFlight(self._ledger.path, PROCESSES)
        if self._in_flight.interrupted:
            await self._ledger.do(dead_letters.add_interrupted, self._in_flight.interrupted)
        self._deaths = await self._ledger.do(dead_letters.interrupted)
        self._quarantined = await self._ledger.do(dead_letters.quarantined)
        self._recording = asyncio.create_task(self._keep_record(), name="in flight")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._recording.cancel()
        self._in_flight.close()

    async def _keep_record(self) -> None:
        while True:
            self._in_flight.replace(self._costly_stories())
            await asyncio.sleep(RECORD_SECONDS)

    async def read(self, story: Story, etag: str | None) -> PageResult:
        """Read a page; ReadFailed for a story in quarantine."""
        deaths, quarantined = self._deaths.get(story.id, 0), self._quarantined.get(story.id)
        if deaths >= MAX_DEATHS:
            return _refusal(f"it was in flight at {deaths} deaths of the daemon, at the last one alone")
        if quarantined is not None and quarantined.updated_at == story.updated_at and not self._retry:
            return _refusal("it stays in quarantine until it is edited, or `neardup retry` names it")
        alone = deaths > 0 or quarantined is not None
        try:
            return await self._read(story, etag, alone=alone)
        finally:
            self._in_flight.remove(story.id)


def _refusal(why: str) -> ReadFailed:
    return ReadFailed(Dead.QUARANTINED, why)
