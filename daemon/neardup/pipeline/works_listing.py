"""The listing of a reference, which always lists all works: those on record that it no longer lists are removed."""

from collections.abc import AsyncIterator

from neardup.core.columns import ListedBlock
from neardup.errors import Fatal
from neardup.ledger import Ledger, stories, works
from neardup.records import BadRow, Checkpoint
from neardup.source import Source
from neardup.telemetry.log import log

EMPTY_LISTING = "[reference] lists no works; look at reference.manifest, or reference.sql for Athena"
REMOVED_AT_ONCE = 100  # works in one transaction


class WorksListing:
    """The works that `source` lists.  When it ends, the others are removed; `removed` counts them.

    None is removed if a row describes no work, because that may be a work on record.
    """

    def __init__(self, source: Source, ledger: Ledger) -> None:
        self._source = source
        self._ledger = ledger
        self.removed = 0

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def size(self) -> int:
        return self._source.size

    async def blocks(self, *, since: int | None, resume: Checkpoint | None) -> AsyncIterator[ListedBlock]:
        """All works; `since` and `resume` are ignored.  Raises Fatal if there are none."""
        listed, bad_rows = set[int](), 0
        async for block in self._source.blocks(since=None, resume=None):
            if isinstance(block, BadRow):
                bad_rows += 1
            else:
                listed.update(block.ids)
            yield block
        if not listed and not bad_rows:
            raise Fatal(EMPTY_LISTING)
        gone = await self._ledger.do(works.ids_without, listed)
        if gone and bad_rows:
            log.warning("no work is removed, because some rows describe no work", rows=bad_rows, not_listed=len(gone))
        elif gone:
            await remove(self._ledger, gone)
            self.removed = len(gone)


async def remove(ledger: Ledger, ids: list[int]) -> None:
    """Remove works with their flags and verdicts, in transactions of REMOVED_AT_ONCE."""
    for start in range(0, len(ids), REMOVED_AT_ONCE):
        await ledger.do(stories.erase, ids[start : start + REMOVED_AT_ONCE])
