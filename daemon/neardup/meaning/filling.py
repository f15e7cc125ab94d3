"""What the queue is filled with, and which vectors go: the ledger says which stories there are."""

from collections.abc import Sequence

from neardup.ledger import Ledger, versions
from neardup.ledger.changes import last_seq
from neardup.ledger.versions import Numbered
from neardup.meaning import queue, vectors
from neardup.meaning.vectors_file import VectorsFile

ROWS_AT_ONCE = 1_000


async def fill(ledger: Ledger, held: VectorsFile, since: int | None) -> None:
    """Put into the queue what is to be embedded.

    These are the works, the stories that are new or changed since the last call, and those known since a time in
    milliseconds, if one is given.
    """
    considered = min(await held.do(queue.through), await ledger.do(last_seq))  # the ledger may be an older copy
    while some := await ledger.do(versions.after, considered):
        considered = some[-1].number
        await held.do(queue.add, some, considered)
    await _add_missing(held, await ledger.do(versions.works))
    if since is not None:
        await _add_missing(held, await ledger.do(versions.known_since, since))


async def _add_missing(held: VectorsFile, some: Sequence[Numbered]) -> None:
    for at in range(0, len(some), ROWS_AT_ONCE):
        part = some[at : at + ROWS_AT_ONCE]
        known = await held.do(vectors.held, [one.story_id for one in part])
        await held.do(queue.add, [one for one in part if one.story_id not in known])


async def remove_gone(ledger: Ledger, held: VectorsFile) -> int:
    """Remove the vectors of the stories that the ledger does not hold any more; returns how many those are."""
    removed, last = 0, vectors.BEFORE_ALL
    while some := await held.do(vectors.ids_after, last):
        last = some[-1]
        if gone := set(some) - await ledger.do(versions.present, some):
            await held.do(vectors.remove, gone)
            removed += len(gone)
    return removed
