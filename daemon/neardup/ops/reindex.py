"""`neardup reindex`: rebuilds the index from the ledger, and repairs the passage index."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing

from neardup.app import App, open_readers


async def reindex(app: App, progress: Callable[[int], None]) -> tuple[int, Counter[str]]:
    """Rebuild the index, and read again the pages of the stories that the passage index lacks.

    Every checksum of the passage index is compared first.  Calls `progress` with the number of stories done by the step
    under way.  Returns how many stories are indexed, and the results of the pages read, by name.  The caller holds the
    lock.  Raises Transient, StoreDown and Fatal.
    """
    from neardup.pipeline.index_sync import rebuild
    from neardup.pipeline.passage_damage import mend
    from neardup.pipeline.passage_reading import PassageReading
    from neardup.pipeline.passage_sync import PassageSync

    indexed = await rebuild(app.index, app.ledger, app.version, progress)
    sync = PassageSync(app.passages, app.ledger)
    async with aclosing(open_readers(app.config)) as readers:
        reading = PassageReading.of_pool(sync, app.ledger, readers, app.config.run)
        await mend(sync, reading, asyncio.Event(), lambda done, _: progress(done))
    await sync.settle(asyncio.Event())
    return indexed, reading.counts
