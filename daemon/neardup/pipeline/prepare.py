"""Preparation of the index before a run lists its first story."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from neardup.errors import Stopped
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index
from neardup.ledger import Ledger, runs
from neardup.pipeline.index_sync import catch_up, forget_fingerprints, ledger_id, refuse_mismatch
from neardup.telemetry.log import log


async def prepare_index(
    index: Index,
    passages: PassageIndex,
    ledger: Ledger,
    version: str,
    *,
    fresh: bool,
    refingerprint_for: str | None,
) -> None:
    """Bring the index to the ledger's last change.

    If `fresh`, clear it instead and record that a sweep is owed; the run builds the index at its end.  Given
    `refingerprint_for`, the settings by which text is extracted from pages, delete all fingerprints first.
    Raises Fatal for an index with fingerprints of another version, or of another ledger.
    """
    if refingerprint_for is not None:
        await forget_fingerprints(index, passages, ledger, version, refingerprint_for)
    await refuse_mismatch(index, ledger, version)
    if fresh:
        await ledger.do(runs.owe_sweep, owed=True)
        # a cleared index has no position, by which the next command knows that it must be built
        await index.clear(await ledger_id(ledger), version)
    else:
        await catch_up(index, ledger, version)
        if await ledger.do(runs.owes_sweep):
            log.warning("a sweep is owed: not all stories were compared; run `neardup sweep`")


async def unless_stopped(work: Coroutine[Any, Any, None], stop: asyncio.Event) -> None:
    """Await `work`.  If `stop` is set before it is done, cancel it and raise Stopped."""
    work_task = asyncio.create_task(work)
    stop_task = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((work_task, stop_task), return_when=asyncio.FIRST_COMPLETED)
        if not work_task.done():
            raise Stopped("stopped before the run began")
        await work_task
    finally:
        work_task.cancel()
        stop_task.cancel()
