"""Repairs a damaged passage index: a damaged segment is removed, and its stories are read again.

Every block of a segment has a checksum, which is compared before the block is used.  So a lookup that succeeds has seen
a whole index, and one that fails is repeated after the repair: damage loses no pair.
"""

import asyncio
from collections.abc import Callable

from neardup.errors import PassagesDamaged
from neardup.index.passages.folder import Damage
from neardup.index.passages.index import PassageIndex
from neardup.pipeline.passage_reading import PassageReading
from neardup.pipeline.passage_sync import PassageSync
from neardup.telemetry.log import log
from neardup.telemetry.metrics import PASSAGE_DAMAGE


class PassageRepair:
    """Repairs the passage index of one run, as its `PassageSync.repair`."""

    def __init__(self, sync: PassageSync, reading: PassageReading) -> None:
        self._sync = sync
        self._reading = reading
        self._repairing = asyncio.Lock()

    async def __call__(self, damage: PassagesDamaged) -> None:
        """Remove the segment and read its stories again; returns when that is done, by any task.

        The stories are read even if the run is to stop: it stops at the latest when its grace period is over, and does
        not write what it could not look up.
        """
        async with self._repairing:
            await drop_damaged(self._sync.index, damage)
            self._sync.begin_again()
            await self._reading.run(asyncio.Event())


async def mend(
    sync: PassageSync, reading: PassageReading, stop: asyncio.Event, show: Callable[[int, int], None]
) -> bool:
    """Bring an index in step with its ledger, compare every checksum, and read again what is damaged or missing.

    `show` is called with the number of stories that are done and how many were missing.  Returns whether `stop` was not
    set before the end.  Only a process that holds the lock may call it.
    """
    await sync.start()
    for damage in await asyncio.to_thread(lambda: list(sync.index.check())):
        await drop_damaged(sync.index, damage)
    if missing := await reading.missing():
        show(0, missing)
    return await reading.run(stop, lambda done: show(done, missing))


async def drop_damaged(index: PassageIndex, damage: PassagesDamaged | Damage) -> None:
    """Remove a damaged segment, unless that has been done; its stories are missing from then on.

    Only the process that writes the index may call it.
    """
    if damage.segment not in {path.name for path in await asyncio.to_thread(index.files)}:
        return
    await asyncio.to_thread(index.drop, damage.segment)
    PASSAGE_DAMAGE.inc()
    log.warning(
        "a segment of the passage index is damaged; its stories are read again",
        segment=damage.segment,
        first=damage.first,
        last=damage.last,
    )
