"""The ledger: one SQLite file that is the durable truth.

A write-ahead log keeps readers and the one writer out of each other's way; synchronous=FULL makes
every committed batch survive a power cut: it syncs the log at each commit.  The functions of this package take a
connection and are synchronous; `Ledger` gives the pipeline one connection on one thread of its own.
"""

import asyncio
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from neardup.errors import Fatal
from neardup.languages import LANGUAGES
from neardup.ledger import damage, files
from neardup.ledger.schema import LATEST, MIGRATIONS, UNRELEASED
from neardup.sqlite import failure

P = ParamSpec("P")
T = TypeVar("T")
BUSY_SECONDS = 30
# 128 MB would save a tenth of a batch's CPU at 4 million stories.  Mapping the file into memory saves a
# third of a lookup's, and counts all of the file that was read as the daemon's own memory.
CACHE_KIB = 16_000
READERS_CACHE_KIB = 8_000


def now_ms() -> int:
    """The wall clock, in whole milliseconds since 1970 in UTC."""
    return time.time_ns() // 1_000_000


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger for reading and writing, made or migrated where needed.  Raises Transient and Fatal."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if files.is_read_only(path.parent):
            raise Fatal(f"cannot open the ledger {path}: its file system is read-only")
        files.make(path)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        _migrate(db, path)
        damage.refuse_damage(db, path)
    except sqlite3.Error as error:
        raise failure(error, f"cannot open the ledger {path}") from error
    except OSError as error:
        raise Fatal(f"cannot open the ledger {path}: {error.strerror}") from error
    return db


def read(path: Path) -> sqlite3.Connection:
    """Open the ledger for reading only.  Raises Fatal, also where there is none yet."""
    try:
        if not path.exists():
            raise Fatal(f"no ledger at {path} yet: run `neardup backfill` first")
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if _is_at_rest(path) else ''}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        db.execute(f"PRAGMA cache_size = -{READERS_CACHE_KIB}")
        _refuse_other_schemas(db.execute("PRAGMA user_version").fetchone()[0], path, may_migrate=False)
    except sqlite3.Error as error:
        raise failure(error, f"cannot read the ledger {path}") from error
    except OSError as error:
        raise Fatal(f"cannot read the ledger {path}: {error.strerror}") from error
    return db


def _is_at_rest(path: Path) -> bool:
    """Whether nobody can write to it; SQLite would make a log beside it even to read."""
    return files.is_read_only(path) and not path.with_name(f"{path.name}-wal").exists()


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    if db.execute("PRAGMA user_version").fetchone()[0] == LATEST:
        return
    with transaction(db):
        have = db.execute("PRAGMA user_version").fetchone()[0]  # another process may have been faster
        _refuse_other_schemas(have, path, may_migrate=True)
        for script in MIGRATIONS[max(have - UNRELEASED, 0) :]:
            for statement in script.split(";\n"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {LATEST}")
        db.execute("INSERT OR IGNORE INTO meta VALUES ('ledger_id', ?)", (uuid.uuid4().hex,))
        db.executemany("INSERT OR IGNORE INTO languages (number, name) VALUES (?, ?)", enumerate(LANGUAGES))


def _refuse_other_schemas(have: int, path: Path, *, may_migrate: bool) -> None:
    if have > LATEST:
        raise Fatal(f"the ledger {path} was written by a newer neardup (schema {have}, this one knows {LATEST})")
    if 0 < have <= UNRELEASED:
        raise Fatal(f"the ledger {path} is a trial version's: move it away and run `neardup backfill`")
    if have < LATEST and not may_migrate:
        raise Fatal(f"the ledger {path} has schema {have}; the next run will bring it to {LATEST}")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # a full disk may have rolled it back already
            db.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """All reads inside are of one moment."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("COMMIT")


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """SQLite's errors -> Transient where another holds the file, else Fatal."""
    try:
        yield
    except sqlite3.Error as error:
        raise failure(error, f"the ledger {path} failed") from error


class Ledger:
    """A connection of the pipeline's, by `opened`, used by one call at a time on a thread of its own."""

    def __init__(self, path: Path, opened: Callable[[Path], sqlite3.Connection] = connect) -> None:
        self.path = path
        self._db = opened(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ledger")

    async def do(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work(connection, ...)` off the event loop.  Raises as `translated` does."""

        def call() -> T:
            with translated(self.path):
                return work(self._db, *args, **kwargs)

        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    def close(self) -> None:
        """Wait for the call under way, then close the file."""
        self._thread.shutdown(wait=True)
        self._db.close()
