"""The ledger: one SQLite file that is the durable truth.

A write-ahead log lets others read while one process writes; synchronous=FULL syncs the log at each commit, so that
every committed batch survives a power cut.  The functions of this package take a connection and are synchronous;
`Ledger` gives the pipeline one connection on one thread of its own.

A module holds a family of the tables that schema.sql defines:

- what was listed and read: stories with the works of the reference, story_rows, languages, versions, first_seen, marks,
  removed_texts, dead_letters, submissions, imports
- what indexes are to apply: outbox, passages
- pairs, from nominated to flagged: candidates, verification, flags with their clusters, serials, similarities,
  meaning_flags
- what moderators see and decide: cases, case_queue, complaints, permissions, verdicts, authors, webhook_events
- what the program did and measured: runs, script_health, self_checks
- the file itself: files, schema, lock
"""

import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from neardup.errors import Fatal, LedgerReplaced, NeardupError
from neardup.ledger import files, lock, schema
from neardup.ledger.files import BUSY_SECONDS
from neardup.sqlite import FAILURES, HINTS, Failure, ThreadedConnection, explain_failure, get_code
from neardup.telemetry.log import log

P = ParamSpec("P")
T = TypeVar("T")
Row = dict[str, Any]  # of a query, by the names of its columns
Do = Callable[..., Awaitable[Any]]  # calls work on a connection to the ledger, as `Ledger.do`
# 128 MB would save a tenth of a batch's CPU time at 4 million stories.  Mapping the file into memory would save a third
# of a lookup's, but everything read would count as the daemon's own memory.
CACHE_KIB = 16_000
READERS_CACHE_KIB = 8_000
AMONG = "IN (SELECT value FROM json_each(?))"  # a list of any length as one parameter, `dump_list` of the values


def now_ms() -> int:
    """The wall clock, in whole milliseconds since 1970 in UTC."""
    return time.time_ns() // 1_000_000


def connect(path: Path) -> sqlite3.Connection:
    """Open the ledger for reading and writing; create it where there is none, and upgrade one of an earlier schema.

    Raises Fatal, and Transient where it is locked, as by another command while it is to be upgraded.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if files.is_read_only(path.parent):
            raise Fatal(f"cannot open the ledger {path}: its file system is read-only")
        files.make_file(path)
        if path.is_dir():
            raise Fatal(f"cannot open the ledger {path}: it is a folder, not a file")
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        _create(db, path)
        files.refuse_damage(db, path)
        _upgrade(db, path)
    except FAILURES as error:
        raise _explain_failure_to(f"open the ledger {path}", path, error) from error
    except OSError as error:
        raise Fatal(f"cannot open the ledger {path}: {error.strerror}") from error
    return db


def read(path: Path) -> sqlite3.Connection:
    """Open the ledger for reading only.  Raises Fatal, also where there is none yet, or one to be upgraded first."""
    db = read_any_schema(path)
    schema.refuse_former_version(schema.read_version(db), path)
    return db


def read_any_schema(path: Path) -> sqlite3.Connection:
    """As `read`, but also a ledger that is to be upgraded, which this program may copy as it is."""
    try:
        if not path.exists():
            raise Fatal(f"no ledger at {path} yet: run `neardup backfill` first")
        if path.is_dir():
            raise Fatal(f"cannot read the ledger {path}: it is a folder, not a file")
        db = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if _is_at_rest(path) else ''}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        db.execute(f"PRAGMA cache_size = -{READERS_CACHE_KIB}")
        version = schema.read_version(db)
        schema.refuse_unknown_versions(version, path)
        if version == 0:
            raise Fatal(f"no ledger at {path} yet: run `neardup backfill` first")
    except FAILURES as error:
        raise _explain_failure_to(f"read the ledger {path}", path, error) from error
    except OSError as error:
        raise Fatal(f"cannot read the ledger {path}: {error.strerror}") from error
    return db


def _explain_failure_to(do: str, path: Path, error: Failure) -> NeardupError:
    """The error to raise where SQLite could not `do` something, such as "open the ledger x.db".

    SQLite needs room for the file by which readers share the log.  On a full disk it reports that it cannot open the
    file, or that reading failed, not that the disk is full.
    """
    if get_code(error) in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN} and files.is_full(path.parent):
        return Fatal(f"cannot {do}: its disk is full; {HINTS[sqlite3.SQLITE_FULL]}")
    return explain_failure(error, f"cannot {do}")


def _is_at_rest(path: Path) -> bool:
    """Whether the file cannot change; SQLite would otherwise create a log beside it even to read it."""
    return files.is_read_only(path) and not files.name_log_file(path).exists()


def _create(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables where the file is new.  Raises Fatal for a ledger of an unknown schema."""
    if (version := schema.read_version(db)) == 0:
        with transaction(db):
            version = schema.read_version(db)  # another process may have made them meanwhile
            if version == 0:
                schema.create(db)
    schema.refuse_unknown_versions(version, path)


def _upgrade(db: sqlite3.Connection, path: Path) -> None:
    """Upgrade a ledger of an earlier schema.  Raises Transient while another command runs."""
    if schema.read_version(db) == schema.VERSION:
        return
    with lock.only_one(path, lock.UPGRADE), transaction(db):
        former = schema.upgrade(db)
    if former < schema.VERSION:  # else another process did it meanwhile
        log.info("the ledger was upgraded", ledger=str(path), former_schema=former, schema=schema.VERSION)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """A write transaction: everything inside is committed, or nothing is.

    Inside another one it is a part of that, so what fails after a write must fail the outer one as well.
    """
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite rolls back by itself when the disk is full
            db.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(db: sqlite3.Connection) -> Iterator[None]:
    """A read transaction: everything inside reads the same state of the ledger."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:  # SQLite ends it by itself where the file is damaged
            db.execute("COMMIT")


@contextmanager
def open_snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads the same state of the ledger to its end.  Raises as `read` and `translate_errors` do."""
    with closing(read(path)) as db, translate_errors(path), snapshot(db):
        yield db


@contextmanager
def open_to_write(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that is closed at the end, to a ledger that exists, of any schema that can be upgraded.

    Raises as `connect` and `translate_errors` do, Fatal where there is no ledger yet.
    """
    read_any_schema(path).close()
    with closing(connect(path)) as db, translate_errors(path):
        yield db


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """SQLite's errors -> Transient where another holds the file, else Fatal."""
    try:
        yield
    except FAILURES as error:
        raise explain_failure(error, f"the ledger {path} failed") from error


def select_named_rows(db: sqlite3.Connection, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
    """The rows of a query, each a `Row`; no two of its columns may have one name."""
    cursor = db.execute(query, values)
    names = [name for name, *_ in cursor.description]
    cursor.row_factory = lambda _, row: dict(zip(names, row, strict=True))  # a sqlite3.Row compares names at each look
    return cursor


def dump_list(values: Iterable[object]) -> str:
    """Values as the parameter of AMONG."""
    return json.dumps(list(values))


def list_conditions(given: Iterable[tuple[str, object]]) -> list[tuple[str, list[object]]]:
    """SQL conditions, each with a value for all of its `?`, as `join_conditions` takes them; without those of None."""
    return [(sql, [value] * sql.count("?")) for sql, value in given if value is not None]


def join_conditions(conditions: Sequence[tuple[str, Sequence[object]]]) -> tuple[str, list[object]]:
    """SQL conditions with their values -> the condition that all of them hold, with all values."""
    return " AND ".join(sql for sql, _ in conditions) or "true", [value for _, values in conditions for value in values]


class Ledger(ThreadedConnection):
    """The ledger at `path`, by a connection of `open_connection`, off the event loop.

    A file that is moved away under a connection takes what is written as if nothing had happened.  So each call
    compares the file at `path` with the one that was opened, also after its work and before it says what was stored.
    A process of an earlier version, beside which a later one upgraded the ledger, writes nothing to it any more.
    """

    def __init__(self, path: Path, open_connection: Callable[[Path], sqlite3.Connection] = connect) -> None:
        super().__init__(open_connection(path), f"the ledger {path} failed")
        self.path = path
        self._file, self._log = files.read_identity(path), files.read_identity(files.name_log_file(path))

    async def do(self, work: Callable[Concatenate[sqlite3.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """As `ThreadedConnection.do`.  Raises LedgerReplaced as well; what `work` wrote is lost then."""

        def do_checked(db: sqlite3.Connection) -> T:
            self._refuse_replaced()
            if (version := schema.read_version(db)) != schema.VERSION:
                raise LedgerReplaced(f"the ledger {self.path} has another schema now: {version}, not {schema.VERSION}")
            result = work(db, *args, **kwargs)
            self._refuse_replaced()
            return result

        return await super().do(do_checked)

    def _refuse_replaced(self) -> None:
        if self._file is None or files.read_identity(self.path) != self._file:
            self.refuse_successor()
            raise LedgerReplaced(f"the ledger {self.path} was replaced by another file")

    def refuse_successor(self) -> None:
        """Raise LedgerReplaced if the ledger cannot be opened again now.

        A file that is gone may be restored soon, and is not replaced by a new one.  Beside another file, SQLite would
        take the log of this one for its own.
        """
        found, log = files.read_identity(self.path), files.name_log_file(self.path)
        if found is None:
            raise LedgerReplaced(f"the ledger {self.path} was moved away")
        if found != self._file and self._log is not None and files.read_identity(log) == self._log:
            raise LedgerReplaced(
                f"the ledger {self.path} was replaced beside the log of the former one: stop neardup, move {log} away,"
                " and restore the copy again"
            )
