"""SQLite: connections on threads of their own, its errors as neardup's, file names that survive a power cut."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from neardup.errors import Fatal, NeardupError, Transient

P = ParamSpec("P")
T = TypeVar("T")
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
# SQLite quotes the definitions of a damaged file, whatever bytes they have; Python decodes the message as UTF-8.
Failure = sqlite3.Error | UnicodeDecodeError
FAILURES = (sqlite3.Error, UnicodeDecodeError)
HINTS = {
    sqlite3.SQLITE_FULL: "free some disk space; nothing that was committed is lost",
    sqlite3.SQLITE_IOERR: "the kernel's log says what the disk answered; nothing that was committed is lost",
    **dict.fromkeys(DAMAGED, "`neardup doctor` says how to restore it"),
}


def get_code(error: Failure) -> int:
    """SQLite's primary result code; 0 for an error that Python's sqlite3 module raised by itself."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def join_lines(error: Failure) -> str:
    """The message of an error; SQLite quotes a damaged table's definition, in several lines."""
    if isinstance(error, UnicodeDecodeError):
        return "malformed database schema"
    return " ".join(str(error).split())


def explain_failure(error: Failure, what: str) -> NeardupError:
    """Transient if another process holds the file, else Fatal; `what` says what failed."""
    code = get_code(error)
    if code in BUSY:
        return Transient(f"{what}: {join_lines(error)}", "locked")
    hint = HINTS.get(code)
    return Fatal(f"{what}: {join_lines(error)}{f'; {hint}' if hint else ''}")


class ThreadedConnection:
    """A connection, opened with `check_same_thread=False`, whose calls run one at a time on a thread of its own.

    The messages of its errors begin with `what`.
    """

    def __init__(self, db: sqlite3.Connection, what: str) -> None:
        self._db = db
        self._what = what
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")

    async def do(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work(connection, ...)`; a transaction that a failure leaves open is rolled back.

        Raises Transient if another process holds the file, Fatal for SQLite's other errors, and what `work` raises.
        """

        def call() -> T:
            try:
                try:
                    return work(self._db, *args, **kwargs)
                except BaseException:
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                    raise
            except FAILURES as error:
                raise explain_failure(error, self._what) from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def close(self) -> None:
        """Wait for the call that is running, then close the connection."""
        self._thread.shutdown(wait=True)
        self._db.close()


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: those created, renamed and deleted so far.

    They survive a power cut then.  Raises OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
