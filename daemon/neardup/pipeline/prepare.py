"""What must be done before a run lists its first story."""

import asyncio

import structlog

from neardup.app import App
from neardup.errors import Stopped
from neardup.ledger import runs
from neardup.pipeline.index_sync import catch_up, forget_fingerprints, ledger_id, refuse_mismatch

log = structlog.get_logger()


async def get_ready(app: App, stop: asyncio.Event, *, refingerprint: bool, fresh: bool) -> None:
    """Bring the index to the ledger, or, `fresh`, put on record that it is to be built and a sweep is owed.

    Raises Stopped when told to stop before it is done, Fatal for an index of other fingerprints or of
    another ledger.
    """
    working = asyncio.create_task(_get_ready(app, refingerprint=refingerprint, fresh=fresh))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Stopped("stopped before the run began")
        await working
    finally:
        working.cancel()
        stopping.cancel()


async def _get_ready(app: App, *, refingerprint: bool, fresh: bool) -> None:
    if refingerprint:
        await forget_fingerprints(app.index, app.ledger, app.version, app.config.extract.model_dump_json())
    await refuse_mismatch(app.index, app.ledger, app.version)
    if fresh:
        await app.ledger.do(runs.owe_sweep, owed=True)
        # whoever comes next sees that it is to be built
        await app.index.clear(await ledger_id(app.ledger), app.version)
    else:
        await catch_up(app.index, app.ledger, app.version)
        if await app.ledger.do(runs.owes_sweep):
            log.warning("pairs were not looked for in all that is there: a sweep is owed, `neardup sweep`")
