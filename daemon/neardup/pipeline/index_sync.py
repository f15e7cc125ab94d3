"""Keeps the index in step with the ledger, by one mechanism however the index fell behind; waits while it is silent.

The ledger numbers its changes, and the index remembers the last one it applied.  An index that is behind replays the
changes it lacks: after each batch, after a crash between ledger and index, after a Redis restored from an older
snapshot.  An index is cleared and rebuilt from the stories if it has no position, if the ledger never made the change
at its position, or if the ledger no longer keeps the changes that follow it.

A run repeats its calls of an index that does not answer until it does, and reports the wait to operators: `IndexWait`.
"""

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import aclosing, closing
from typing import TypeVar

from neardup.core.candidates.banding import FingerprintArrays
from neardup.core.fingerprint.version import algorithm, explain_difference
from neardup.errors import Fatal, IndexDamaged, Transient
from neardup.index.passages.index import PassageIndex
from neardup.index.protocol import Index, refuse_foreign_index, refuse_index_mismatch
from neardup.ledger import Ledger, now_ms, outbox, read, runs, versions
from neardup.ledger.files import make_scratch_folder, translate_scratch_errors
from neardup.ledger.languages import count_by_language
from neardup.ledger.stories import remove_all
from neardup.records import Change, Language
from neardup.retry import retry_forever
from neardup.telemetry.log import log
from neardup.telemetry.metrics import INDEX_LAG, INDEX_REPAIRS, WAITING
from neardup.telemetry.systemd import notify

T = TypeVar("T")
INDEX = "index"
REPLAY_CHANGES = 1000  # at a time
REBUILD_STORIES = 50_000  # at a time
KEPT_CHANGES = 100_000  # in the ledger; an index that lacks more is rebuilt
SLOW_SECONDS = 5.0  # longer than any call of an index that answers


async def prepare_index(
    index: Index, passages: PassageIndex, ledger: Ledger, version: str, *, fresh: bool, refingerprint_for: str | None
) -> None:
    """Bring the index to the ledger's last change.

    If `fresh`, clear it instead and record that a sweep is owed; the run builds the index at its end.  Given
    `refingerprint_for`, the settings by which text is extracted from pages, delete all fingerprints first.
    Raises Fatal for an index with fingerprints of another version, or of another ledger.
    """
    if refingerprint_for is not None:
        await forget_fingerprints(index, passages, ledger, version, refingerprint_for)
    await admit_version(index, ledger, version)
    if fresh:
        await ledger.do(runs.owe_sweep, owed=True)
        # a cleared index has no position, by which the next command knows that it must be built
        await index.clear(await read_ledger_id(ledger), version)
    else:
        await catch_up(index, ledger, version)
        if await ledger.do(runs.owes_sweep):
            log.warning("a sweep is owed: not all stories were compared; run `neardup sweep`")


async def admit_version(index: Index, ledger: Ledger, version: str) -> None:
    """Record this version as that of the fingerprints in ledger and index.

    Raises Fatal, which names the remedy, if they cannot be compared with it.
    """
    await admit_ledger_version(ledger, version)
    position = await index.read_position()
    refuse_index_mismatch(position, await read_ledger_id(ledger), version, await ledger.do(count_by_language))
    if position.applied is not None and position.version != version:  # an index without a position will be rebuilt
        await index.admit(version)


async def admit_ledger_version(ledger: Ledger, version: str) -> None:
    """Record this version as that of the ledger's fingerprints.  Raises Fatal if they cannot be compared with it.

    Versions that differ only in languages of which the ledger has no stories can be compared.
    """
    held = await ledger.do(count_by_language)
    recorded = await ledger.do(runs.get, "fingerprint_version")
    if recorded is not None and (why := explain_difference(recorded, version, held)):
        raise Fatal(
            f"the ledger holds {why}: they cannot be compared; `neardup backfill --refingerprint` makes them again"
        )
    if recorded != version:
        await ledger.do(runs.put, "fingerprint_version", version)


async def forget_fingerprints(
    index: Index, passages: PassageIndex, ledger: Ledger, version: str, extraction: str
) -> None:
    """Delete all fingerprints from ledger and indexes, so that a backfill makes them again.

    Until a backfill has succeeded, another call deletes nothing, unless `extraction`, the settings by which text is
    extracted from pages, has changed.  Raises Fatal if the index belongs to another ledger.
    """
    position = await index.read_position()
    refuse_foreign_index(position, await read_ledger_id(ledger))
    if await ledger.do(runs.get, "refingerprinting") != f"{version} {extraction}":
        await asyncio.to_thread(passages.clear, algorithm())
        await ledger.do(remove_all, version, extraction)
        await index.clear(await read_ledger_id(ledger), version)
    elif position.version != version:
        await index.clear(await read_ledger_id(ledger), version)


async def catch_up(index: Index, ledger: Ledger, version: str) -> None:
    """Bring the index to the ledger's last change, by replay if possible and else by a rebuild.

    Raises Fatal, before anything is written, for the index of another ledger or of other fingerprints.
    """
    why = {}
    try:
        if await replay(index, ledger, version):
            return
    except IndexDamaged as error:
        why = {"why": str(error)}
    applied = (await index.read_position()).applied
    if applied is not None or len(await ledger.do(versions.list_fingerprints_after, 0, 1)):
        last = await ledger.do(outbox.read_last_seq)
        log.warning("the index has lost data, rebuilding it from the ledger", applied=applied, last=last, **why)
        INDEX_REPAIRS.labels("rebuilt").inc()
    await rebuild(index, ledger, version)


async def replay(index: Index, ledger: Ledger, version: str) -> bool:
    """Apply the changes that the index lacks; False if the ledger does not have them, or they cannot be determined.

    Stories may be looked up at the same time.  Raises as `catch_up`.
    """
    position = await index.read_position()
    applied = position.applied
    while True:
        owner, held, last, missing = await ledger.do(_read_missing_changes, applied)
        refuse_index_mismatch(position, owner, version, held)
        if applied is None or missing is None:
            return False
        INDEX_LAG.set(last - applied)
        if not missing:
            return True
        await index.apply(missing, missing[-1].seq, since=applied)
        applied = missing[-1].seq


def _read_missing_changes(
    db: sqlite3.Connection, applied: int | None
) -> tuple[str, Collection[str], int, list[Change] | None]:
    """The ledger's id, the languages of its stories, its last change, and the next changes after `applied`.

    The changes are None if they cannot be determined.  One call for all four, because the ledger's thread is busy.
    """
    last = outbox.read_last_seq(db)
    known = applied is not None and outbox.read_oldest_seq(db) - 1 <= applied <= last
    missing = outbox.list_changes(db, applied, REPLAY_CHANGES) if applied is not None and known else None
    return runs.get(db, "ledger_id") or "", count_by_language(db), last, missing


async def rebuild(
    index: Index, ledger: Ledger, version: str, progress: Callable[[int], None] = lambda done: None
) -> int:
    """Clear the index and fill it from the ledger, without reading the object store; the caller holds the lock.

    Stories may be written meanwhile.  Calls `progress` with the number of stories done so far, and returns their total.
    A rebuild that was interrupted leaves an index without a position, which the next run rebuilds.  Raises Fatal if
    there is no room for scratch files beside the ledger.
    """
    await ledger.do(outbox.doubt_lookups)  # earlier lookups may have missed what the index had lost
    with closing(Ledger(ledger.path, read)) as reader:
        # what is written meanwhile is replayed afterwards: it must not be built in as well
        await reader.do(lambda db: db.execute("BEGIN"))
        last = await reader.do(outbox.read_last_seq)
        sizes = {Language(name): n for name, n in (await reader.do(count_by_language)).items()}
        await index.clear(await read_ledger_id(ledger), version, sizes)
        done = 0
        with make_scratch_folder(ledger.path, "rebuild") as scratch, translate_scratch_errors(scratch.parent):
            async with aclosing(index.build(_read_fingerprints(reader), scratch)) as built:
                async for more in built:
                    done += more
                    progress(done)
    await index.apply([], last)
    INDEX_LAG.set(0)
    return done


async def _read_fingerprints(ledger: Ledger) -> AsyncIterator[FingerprintArrays]:
    """Those of all stories in order of their numbers, some at a time; ends the read transaction of `ledger`."""
    after = 0
    while len(fingerprints := await ledger.do(versions.list_fingerprints_after, after, REBUILD_STORIES)):
        yield fingerprints
        after = int(fingerprints.numbers[-1])
    await ledger.do(lambda db: db.execute("COMMIT"))  # until then the write-ahead log cannot be truncated


async def read_ledger_id(ledger: Ledger) -> str:
    """The id by which an index recognises its ledger."""
    return await ledger.do(runs.get, "ledger_id") or ""


class IndexWait:
    """Waits for the index of one process, and reports it: one log line, the ledger, a gauge, systemd, `status`.

    Several calls may wait at a time: the wait is over when none of them does.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._callers: set[object] = set()
        self._why: str | None = None
        self._since = 0

    @property
    def status(self) -> str | None:
        """One line that says what is waited for and why; None if there is no wait."""
        return None if self._why is None else f"waiting for the index: {self._why}"

    async def wait_for_answer(self, stage: str, call: Callable[[], Awaitable[T]], *, may_take_long: bool = False) -> T:
        """Await `call()` until it raises no Transient, and return its result.

        A call without an answer for SLOW_SECONDS is reported as a wait too, unless it `may_take_long`, as the building
        of an index does; it is not repeated meanwhile.
        """
        began, caller = time.monotonic(), object()

        async def attempt() -> T:
            slow = None if may_take_long else asyncio.create_task(self._report_slow(caller))
            try:
                return await call()
            except Transient as error:
                await self._report(caller, str(error))
                raise
            finally:
                if slow is not None:
                    slow.cancel()

        try:
            answer = await retry_forever(stage, attempt)
        finally:
            is_over = await self._leave(caller)
        if is_over:
            log.info("no longer waiting", what=INDEX, seconds=round(time.monotonic() - began, 1))
            notify("STATUS=the index answers again")
        return answer

    async def _report_slow(self, caller: object) -> None:
        await asyncio.sleep(SLOW_SECONDS)
        await self._report(caller, f"no answer for {SLOW_SECONDS:.0f} seconds")

    async def _report(self, caller: object, why: str) -> None:
        """Add a caller to those that wait, and report the reason if it is new."""
        self._callers.add(caller)
        if self._why == why:
            return
        if self._why is None:
            log.warning("waiting", what=INDEX, why=why)
            self._since = now_ms()
        self._why = why
        notify(f"STATUS={self.status}")
        WAITING.labels(INDEX).set(1)
        facts = {"pid": os.getpid(), "what": INDEX, "why": why, "since": self._since}
        await self._ledger.do(runs.put, "waiting", json.dumps(facts))

    async def _leave(self, caller: object) -> bool:
        """Remove a caller from those that wait; returns whether it was the last."""
        if caller not in self._callers:
            return False
        self._callers.remove(caller)
        if self._callers:
            return False
        self._why = None
        WAITING.labels(INDEX).set(0)
        await self._ledger.do(runs.put, "waiting", "")
        return True
