"""Stories that were in flight when a process died: each is read alone from then on, and not after a second death."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Self

from neardup.ledger import Ledger, dead_letters
from neardup.pages.in_flight import InFlight
from neardup.pages.results import PageResult, ReadFailed
from neardup.records import Dead, Story

TRIES = 2
BEAT_SECONDS = 0.25


class Quarantine:
    """Reads the pages of stories by `read`, as a reader pool has it, at most `most` at a time; a context.

    A story in quarantine is read once more when it was edited since, or when it is asked for `again`.
    """

    def __init__(self, ledger: Ledger, read: Callable[..., Awaitable[PageResult]], most: int, *, again: bool) -> None:
        self._ledger = ledger
        self._read = read
        self._most = most
        self._again = again
        self._deaths: Mapping[int, int] = {}
        self._held: Mapping[int, Story] = {}

    async def __aenter__(self) -> Self:
        """Put on record which stories were in flight when the last run died.  Raises Fatal."""
        self._in_flight = InFlight(self._ledger.path, self._most)
        if self._in_flight.suspects:
            await self._ledger.do(dead_letters.suspect, self._in_flight.suspects)
        self._deaths = await self._ledger.do(dead_letters.suspects)
        self._held = await self._ledger.do(dead_letters.quarantined)
        self._beating = asyncio.create_task(self._beat(), name="in flight")
        return self

    async def __aexit__(self, *_: object) -> None:
        self._beating.cancel()
        self._in_flight.close()

    async def _beat(self) -> None:
        while True:
            self._in_flight.beat()
            await asyncio.sleep(BEAT_SECONDS)

    async def read(self, story: Story, etag: str | None) -> PageResult:
        """A page, its story on record as in flight meanwhile; ReadFailed for a story in quarantine."""
        deaths, held = self._deaths.get(story.id, 0), self._held.get(story.id)
        if deaths >= TRIES:
            return _quarantined(f"it was in flight at {deaths} deaths of the daemon, at the last one alone")
        if held is not None and held.updated_at == story.updated_at and not self._again:
            return _quarantined("it stays in quarantine until it is edited, or `neardup retry` names it")
        suspected = deaths > 0 or held is not None
        return await self._read(story, etag, alone=suspected, record=self._in_flight.reading)


def _quarantined(why: str) -> ReadFailed:
    return ReadFailed(Dead.QUARANTINED, why)
