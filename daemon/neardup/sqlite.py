"""SQLite's errors -> neardup's: what failed, why, and what to do about it."""

import sqlite3

from neardup.errors import Fatal, NeardupError, Transient

BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
HINTS = {
    sqlite3.SQLITE_FULL: "make room; nothing that was committed is lost",
    **dict.fromkeys(DAMAGED, "`neardup doctor` says how to restore it"),
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary result code; 0 where it is an error of the module's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def failure(error: sqlite3.Error, what: str) -> NeardupError:
    """Transient where another holds the file, else Fatal; `what` says what failed."""
    code = code_of(error)
    if code in BUSY:
        return Transient(f"{what}: {error}", "locked")
    hint = HINTS.get(code)
    return Fatal(f"{what}: {error}{f'; {hint}' if hint else ''}")
