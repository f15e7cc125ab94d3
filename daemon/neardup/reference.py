"""The reference: the catalogues of works to protect, which are listed by `neardup reference sync`."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from neardup.app import App
from neardup.errors import Misuse, Transient
from neardup.running import run_once

if TYPE_CHECKING:
    from neardup.pipeline.progress import Watch
    from neardup.pipeline.summary import RunSummary

COMMAND = "reference"


@dataclass(frozen=True, slots=True)
class Synced:
    """The outcome of a sync: the summary of its run, and how many works it added, updated and removed."""

    summary: "RunSummary"
    added: int
    updated: int
    removed: int


async def sync(app: App, stop: asyncio.Event, watch: "Watch | None" = None) -> Synced:
    """List all works of [reference]: add and update them, and remove those that are no longer listed.

    Raises Misuse without [reference], and as `run_once` does.
    """
    from neardup.ledger import works
    from neardup.ledger.lock import only_one
    from neardup.pipeline.index_sync import catch_up
    from neardup.pipeline.works_listing import WorksListing
    from neardup.source.listings import open_reference

    listing, before = WorksListing(open_reference(app.config), app.ledger), await app.ledger.do(works.count)
    summary = await run_once(app, COMMAND, stop, watch, listing=listing)
    added = await app.ledger.do(works.count) + listing.removed - before
    if listing.removed:
        with suppress(Transient), only_one(app.ledger.path, COMMAND):  # or else the next run does it
            await catch_up(app.index, app.ledger, app.version)
    return Synced(summary, added, summary.counts.fingerprinted - added, listing.removed)


async def remove_catalogue(app: App, name: str) -> int:
    """Remove a catalogue with its works, their flags and verdicts; returns the number of works.

    Raises Misuse if there is none of this name, Transient if another command is running.
    """
    from neardup.ledger import works
    from neardup.ledger.lock import only_one
    from neardup.pipeline.index_sync import catch_up
    from neardup.pipeline.passage_sync import PassageSync
    from neardup.pipeline.works_listing import remove

    with only_one(app.ledger.path, COMMAND):
        ids = await app.ledger.do(works.ids_of, name)
        await catch_up(app.index, app.ledger, app.version)
        await PassageSync(app.passages, app.ledger).start()
        await remove(app.ledger, ids)
        struck = await app.ledger.do(works.strike_dead_letters, name)
        await catch_up(app.index, app.ledger, app.version)
    if not ids and not struck:
        known = ", ".join(one.name for one in await app.ledger.do(works.catalogues)) or "none"
        raise Misuse(f"no catalogue {name} is on record; on record: {known}")
    return len(ids)
