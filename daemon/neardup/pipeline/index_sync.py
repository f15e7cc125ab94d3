"""Keeps the index in step with the ledger: one mechanism for every way in which it can fall behind.

The ledger numbers its changes; the index remembers the last one it applied.  An index that is
behind is replayed the changes it lacks: after each batch, after a crash between the two, after a
Redis that went back to an older snapshot.  An index that knows of no change, of one the ledger never
made, or of one so old that its successors are gone, is cleared and rebuilt from the stories.
"""

import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import aclosing
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog

from neardup.core.candidates.fingerprint_arrays import Columns
from neardup.core.fingerprint.version import difference
from neardup.errors import Fatal
from neardup.index.protocol import Index, Mark
from neardup.ledger import Ledger, changes, fingerprint_arrays, runs, stories
from neardup.records import Change, Language
from neardup.telemetry.metrics import INDEX_LAG

REPLAY_CHANGES = 1000
REBUILD_STORIES = 50_000
KEEP_CHANGES = 100_000

log = structlog.get_logger()


async def refuse_strangers(index: Index, ledger: Ledger, version: str) -> None:
    """Make sure that ledger, index and this program speak of the same fingerprints.

    Raises Fatal, naming the way out, where they don't.
    """
    await refuse_other_fingerprints(ledger, version)
    mark = await index.mark()
    refuse(mark, await ledger_id(ledger), version, await ledger.do(runs.stories_by_language))
    if mark.version not in (None, version):
        await index.admit(version)


async def refuse_other_fingerprints(ledger: Ledger, version: str) -> None:
    """The same of the ledger alone."""
    held = await ledger.do(runs.stories_by_language)
    written = await ledger.do(runs.get, "fingerprint_version")
    if written is not None and (why := difference(written, version, held)):
        raise Fatal(
            f"the ledger holds {why}: they cannot be compared; `neardup backfill --refingerprint` makes them all anew"
        )
    if written != version:
        await ledger.do(runs.put, "fingerprint_version", version)


def refuse(mark: Mark, ledger: str, version: str, held: Collection[str]) -> None:
    """Raise Fatal for an index of another ledger (known by its id), or of other fingerprints.

    `held` are the languages that the ledger has stories of.
    """
    if mark.ledger_id not in (None, ledger):
        raise Fatal("the index belongs to another ledger; `neardup reindex` rebuilds it from this one")
    if mark.version is None:
        return
    recorded, _, other = mark.version.partition(", ")
    if why := difference(recorded, version, held):
        raise Fatal(f"the index holds {why}; `neardup reindex` rebuilds it")
    if other:
        raise Fatal(f"the index is {other}; `neardup reindex` rebuilds it")


async def start_anew(index: Index, ledger: Ledger, version: str, extraction: str) -> None:
    """Forget every fingerprint, in the ledger and then in the index; a backfill makes them again.

    Once begun it is not begun again before a backfill has ended well, but for another `extraction`, the
    settings by which texts are taken from pages.  Raises Fatal where the index belongs to another ledger.
    """
    mark = await index.mark()
    refuse(mark, await ledger_id(ledger), (mark.version or version).partition(", ")[0], ())
    if await ledger.do(runs.get, "refingerprinting") != f"{version} {extraction}":
        await ledger.do(stories.restart, version, extraction)
        await index.clear(await ledger_id(ledger), version)
    elif mark.version != version:
        await index.clear(await ledger_id(ledger), version)


async def catch_up(index: Index, ledger: Ledger, version: str) -> None:
    """Bring the index to the ledger's last change, by replay where that can do, else by a rebuild.

    Raises Fatal for an index that is not this ledger's, before anything is written to it.
    """
    if await replay(index, ledger, version):
        return
    if (applied := (await index.mark()).applied) is not None or len(await ledger.do(fingerprint_arrays.after, 0, 1)):
        last = await ledger.do(changes.last_seq)
        log.warning("the index has lost data, rebuilding it from the ledger", applied=applied, last=last)
    await rebuild(index, ledger, version)


async def replay(index: Index, ledger: Ledger, version: str) -> bool:
    """Tell the index the changes that it lacks; False where these are gone, or it is not known which they are.

    Stories may be looked up meanwhile.  Raises as `catch_up`.
    """
    mark = await index.mark()
    applied = mark.applied
    while True:
        owner, held, last, behind = await ledger.do(_lacking, applied)
        refuse(mark, owner, version, held)
        if applied is None or behind is None:
            return False
        INDEX_LAG.set(last - applied)
        if not behind:
            return True
        await index.apply(behind, behind[-1].seq, since=applied)
        applied = behind[-1].seq


def _lacking(db: sqlite3.Connection, applied: int | None) -> tuple[str, Collection[str], int, list[Change] | None]:
    """The ledger's id, its languages with stories, its last change, and the next that an index so far lacks.

    These are None where they are not known.
    All at once, for the ledger is asked by many.
    """
    last = changes.last_seq(db)
    known = applied is not None and changes.oldest(db) - 1 <= applied <= last
    behind = changes.after(db, applied, REPLAY_CHANGES) if applied is not None and known else None
    return runs.get(db, "ledger_id") or "", runs.stories_by_language(db), last, behind


async def rebuild(
    index: Index, ledger: Ledger, version: str, progress: Callable[[int], None] = lambda done: None
) -> int:
    """Clear the index and fill it from the ledger, with no read of the object store; the caller holds the lock.

    `progress` is told how many stories are in.  Cut short, the index has no mark, and the next run
    begins again.  Returns the number of stories.  Raises Fatal where there is no room for what is put
    aside meanwhile.
    """
    last = await ledger.do(changes.last_seq)
    sizes = {Language(name): n for name, n in (await ledger.do(runs.stories_by_language)).items()}
    await index.clear(await ledger_id(ledger), version, sizes)
    done = 0
    prefix = f"{ledger.path.name}-rebuild-"
    for left in ledger.path.parent.glob(f"{prefix}*"):  # by a rebuild that was killed
        shutil.rmtree(left, ignore_errors=True)
    try:
        with TemporaryDirectory(prefix=prefix, dir=ledger.path.parent) as scratch:
            async with aclosing(index.build(_pages(ledger), Path(scratch))) as built:
                async for more in built:
                    done += more
                    progress(done)
    except OSError as error:
        raise Fatal(f"cannot put stories aside in {ledger.path.parent}: {error.strerror}") from error
    await index.apply([], last)
    INDEX_LAG.set(0)
    return done


async def _pages(ledger: Ledger) -> AsyncIterator[Columns]:
    """All stories, in order of their numbers."""
    after = 0
    while len(page := await ledger.do(fingerprint_arrays.after, after, REBUILD_STORIES)):
        yield page
        after = int(page.numbers[-1])


async def ledger_id(ledger: Ledger) -> str:
    """What an index knows its ledger by."""
    return await ledger.do(runs.get, "ledger_id") or ""
