"""What must be done before a run lists its first story."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from neardup.errors import Stopped
from neardup.index.protocol import Index
from neardup.ledger import Ledger, runs
from neardup.pipeline.index_sync import catch_up, forget_fingerprints, ledger_id, refuse_mismatch

log = structlog.get_logger()


async def prepare_index(
    index: Index, ledger: Ledger, version: str, *, fresh: bool, refingerprint_for: str | None
) -> None:
    """Bring the index to the ledger, or, `fresh`, put on record that it is to be built and a sweep is owed.

    With `refingerprint_for`, the settings by which texts are taken from pages, all fingerprints are forgotten first.
    Raises Fatal for an index of other fingerprints or of another ledger.
    """
    if refingerprint_for is not None:
        await forget_fingerprints(index, ledger, version, refingerprint_for)
    await refuse_mismatch(index, ledger, version)
    if fresh:
        await ledger.do(runs.owe_sweep, owed=True)
        # whichever command comes next sees that it is to be built
        await index.clear(await ledger_id(ledger), version)
    else:
        await catch_up(index, ledger, version)
        if await ledger.do(runs.owes_sweep):
            log.warning("pairs were not looked for among all stories: a sweep is owed, `neardup sweep`")


async def unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Await `work`.  Raises Stopped where `stop` is set before it is done; it is cancelled then."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Stopped("stopped before the run began")
        await working
    finally:
        working.cancel()
        stopping.cancel()
