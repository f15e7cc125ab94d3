"""Copies a ledger consistently, while others read and write it.

SQLite's backup API copies the pages under one read transaction: writers need not wait and do not make the copy start
over; what they write meanwhile stays in the write-ahead log.  The copy is one file without a log.  It is closed, read
again and checked in full, indexes included, before it gets its final name.
"""

import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol

from neardup.errors import Fatal, Misuse, NeardupError, Transient
from neardup.ledger import connect, files, now_ms, outbox, read_any_schema, runs, schema, snapshot
from neardup.sqlite import FAILURES, explain_failure, sync_folder

PAGES_A_STEP = 4096  # 16 MB
BESIDE = ("", "-journal", "-wal", "-shm")  # files that SQLite may leave behind when a copy is killed


class Companion(Protocol):
    """What is copied together with a ledger."""

    def begin(self) -> None:
        """Called once the ledger's snapshot has begun."""
        ...

    def write(self) -> None:
        """Called before the ledger's copy gets its final name."""
        ...

    def finish(self) -> None:
        """Called after that."""
        ...


def back_up(ledger: Path, to: Path, companions: Sequence[Companion]) -> int:
    """Copy the ledger to a path, completely or not at all, replacing a file there.  Returns the copy's size in bytes.

    A ledger of an earlier schema is copied as it is, and not upgraded: so the copy is not recorded in it.

    Raises Misuse for a path that cannot be that of a copy, Transient where another copy to it is in progress, Fatal
    where the copy cannot be written or turns out damaged.
    """
    _refuse_path(to, ledger)
    with closing(read_any_schema(ledger)) as source:
        is_former = schema.read_version(source) < schema.VERSION
        try:
            with _open_part(to) as (part, handle):
                os.fchmod(handle, stat.S_IMODE(ledger.stat().st_mode) & files.SHARED_MODE)
                _copy(source, part, companions)
                _refuse_damage(part)
                os.fsync(handle)
                for companion in companions:
                    companion.write()
                part.replace(to)
                sync_folder(to.parent)
                for companion in companions:
                    companion.finish()
        except OSError as error:
            raise Fatal(f"cannot write {to}: {error.strerror}") from error
        except FAILURES as error:
            raise explain_failure(error, f"cannot copy the ledger to {to}") from error
    if not is_former:
        with suppress(NeardupError), closing(connect(ledger)) as db:  # the copy is valid even if it cannot be recorded
            runs.put(db, runs.BACKED_UP, str(now_ms()))
    return to.stat().st_size


def _refuse_path(to: Path, ledger: Path) -> None:
    if to.exists() and not to.is_file():
        raise Misuse(f"{to} is no regular file")
    if to.resolve() == ledger.resolve():
        raise Misuse(f"{to} is the ledger itself")
    if not to.parent.is_dir():
        raise Misuse(f"there is no folder {to.parent}")


@contextmanager
def _open_part(to: Path) -> Iterator[tuple[Path, int]]:
    """An empty, locked file beside a path, removed at the end unless it was renamed.  Raises Transient."""
    part = to.with_name(f".{to.name}.part")
    handle = os.open(part, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(handle, 0)
        for suffix in BESIDE[1:]:
            part.with_name(part.name + suffix).unlink(missing_ok=True)
        try:
            yield part, handle
        finally:
            for suffix in BESIDE:
                part.with_name(part.name + suffix).unlink(missing_ok=True)
    except BlockingIOError as error:
        raise Transient(f"another copy is being made for {to}", "locked") from error
    finally:
        os.close(handle)


def _copy(source: sqlite3.Connection, part: Path, companions: Sequence[Companion]) -> None:
    """Copy the pages of one snapshot.  Raises Fatal."""
    with closing(sqlite3.connect(part, isolation_level=None)) as copy, snapshot(source):
        last = outbox.read_last_seq(source)  # the first read starts the snapshot
        for companion in companions:
            companion.begin()
        source.backup(copy, pages=PAGES_A_STEP, progress=lambda *_: None)  # signals interrupt it between steps
        copy.execute("PRAGMA journal_mode = DELETE")  # no log beside it
        if outbox.read_last_seq(copy) != last:
            raise _explain_damage("its last change is missing")


def _refuse_damage(part: Path) -> None:
    """Check the copy as it is in the file, not in the cache of the connection that wrote it.  Raises Fatal."""
    if faults := files.find_faults(part):
        raise _explain_damage("; ".join(faults))


def _explain_damage(why: str) -> Fatal:
    advice = "the ledger may be, too: `neardup doctor` looks at it; no copy was replaced"
    return Fatal(f"the copy is damaged: {why}; {advice}")
