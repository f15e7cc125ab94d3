"""The ledger's files: their names, their permissions, damage to them by a disk, a power cut or a person, and scratch
files beside the ledger, which has the room for what is made of it.

SQLite gives the -wal and -shm files beside the ledger the mode of the ledger's file.  In a folder with the setgid bit,
the file system gives new files the group of the folder.  So in such a folder the daemon and operators share a ledger,
no matter who opened it first and with which umask.  Elsewhere the owner writes it and the group reads it.

A full check reads the whole file: measured on 4.17 million stories, 1 GB, `PRAGMA quick_check` took 1.2 s with the
file in memory and 7.9 s from disk, `PRAGMA integrity_check` 2.1 s with it in memory; a ledger of 15.8 million stories
takes four times that.  So a start checks a bounded number of pages; `neardup doctor` and `neardup backup` check all.
"""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

from neardup.errors import Fatal
from neardup.sqlite import DAMAGED, FAILURES, get_code, join_lines

PRIVATE_MODE = 0o640
SHARED_MODE = 0o660
PRIVATE_FOLDER_MODE = 0o750
SHARED_FOLDER_MODE = 0o2770
BUSY_SECONDS = 30
SMALL_PAGES = 4096  # 16 MB, checked completely in about 20 ms
PROBES = 256  # rows of each large table that a start reads, in about 2 ms
MOST_FAULTS = 3  # in a message
RESTORE = (
    "to restore it, stop neardup, move {path} with its -wal and -shm away, put the copy that `neardup backup` made"
    " in its place and start neardup: what came since is listed again, and the index heals by itself; without a copy,"
    " `neardup backfill` makes all but the verdicts again"
)


def make_file(path: Path) -> None:
    """Create an empty file unless there is one.  Raises OSError.

    In a folder with the setgid bit the group may read and write it; elsewhere the group may read it.  The umask changes
    neither.
    """
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(descriptor, SHARED_MODE if path.parent.stat().st_mode & stat.S_ISGID else PRIVATE_MODE)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder unless there is one; its mode corresponds to that of a file beside it.  Raises OSError."""
    try:
        path.mkdir(0o700)
    except FileExistsError:
        return
    mode = path.parent.stat().st_mode
    path.chmod(SHARED_FOLDER_MODE if mode & stat.S_ISGID else PRIVATE_FOLDER_MODE)


def read_identity(path: Path) -> tuple[int, int] | None:
    """The device and the inode of a file; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def is_read_only(path: Path) -> bool:
    """Whether the file system of a file is mounted read-only."""
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY)


def is_full(folder: Path) -> bool:
    """Whether the file system of a folder has no room."""
    return os.statvfs(folder).f_bavail == 0


def name_beside(suffix: str, ledger: Path) -> Path:
    """The path of what stands beside a ledger, under the name of the ledger with a suffix."""
    return ledger.with_name(ledger.name + suffix)


name_log_file = partial(name_beside, "-wal")  # SQLite's write-ahead log
name_passages_folder = partial(name_beside, ".passages")  # the passage index
name_titles_file = partial(name_beside, ".titles")  # the index of the titles
name_texts_file = partial(name_beside, ".texts")  # the index of the words of the latest texts
name_vectors_file = partial(name_beside, ".vectors")  # the vectors of the stories
name_heads_file = partial(name_beside, ".heads")  # the heads of the tree of what the ledger saw first
name_submitted_folder = partial(name_beside, ".submitted")  # the submitted pages


def refuse_damage(db: sqlite3.Connection, path: Path) -> None:
    """Check a bounded part of the file.  Raises Fatal, or sqlite3.DatabaseError.

    A small file is checked completely; of a large one, the schema and of each table the first row, the last and
    PROBES between.  SQLite itself refuses a truncated file.
    """
    if db.execute("PRAGMA page_count").fetchone()[0] <= SMALL_PAGES:
        faults = _run_check(db, "quick_check")
        if faults:
            raise _explain_damage(path, faults, "`neardup doctor` says how to restore it")
        return
    for table, key in _map_tables(db).items():
        _probe(db, table, key)


def refuse_any_damage(path: Path) -> None:
    """Check every page and every index.  Raises Fatal, with instructions to restore, or sqlite3.Error."""
    if faults := find_faults(path):
        raise _explain_damage(path, faults, RESTORE.format(path=path))


def find_faults(path: Path) -> list[str]:
    """The first MOST_FAULTS faults that SQLite finds in the pages and indexes of a file.  Raises sqlite3.Error.

    No table has foreign keys, so there are none to check.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS)) as db:
            return _run_check(db, "integrity_check")
    except FAILURES as error:
        if get_code(error) not in DAMAGED:
            raise
        return [join_lines(error)]


def _explain_damage(path: Path, faults: list[str], advice: str) -> Fatal:
    return Fatal(f"the ledger {path} is damaged: {'; '.join(faults)}; {advice}")


def _run_check(db: sqlite3.Connection, check: str) -> list[str]:
    faults = [" ".join(row[0].split()) for row in db.execute(f"PRAGMA {check}({MOST_FAULTS})")]
    return [] if faults == ["ok"] else faults


def _map_tables(db: sqlite3.Connection) -> dict[str, str]:
    """Table -> the first column of its key."""
    names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage AND name NOT LIKE 'sqlite_%'")
    keys = "SELECT name FROM pragma_table_info(?) WHERE pk = 1"
    return {name: db.execute(keys, (name,)).fetchone()[0] for (name,) in names.fetchall()}


def _probe(db: sqlite3.Connection, table: str, key: str) -> None:
    """Read rows of a table: the first, the last and, where its key is a number, some evenly spread between."""
    first, last = (
        db.execute(f"SELECT {key}, * FROM {table} ORDER BY {key} {way} LIMIT 1").fetchone() for way in ("ASC", "DESC")
    )
    if first is None or not isinstance(first[0], int):  # an empty table, or one keyed by text
        return
    for at in range(first[0], last[0], max((last[0] - first[0]) // PROBES, 1)):
        db.execute(f"SELECT * FROM {table} WHERE {key} >= ? ORDER BY {key} LIMIT 1", (at,)).fetchone()


@contextmanager
def make_scratch_folder(ledger: Path, purpose: str) -> Iterator[Path]:
    """A folder beside the ledger that is removed at the end.  The caller holds the ledger's lock.

    What a process that was killed has left for the same purpose is removed first.  Raises Fatal where
    the folder cannot be written.
    """
    from shutil import rmtree  # noqa: PLC0415 - few commands need scratch files
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - likewise

    prefix = f"{ledger.name}-{purpose}-"
    for leftover in ledger.parent.glob(f"{prefix}*"):
        rmtree(leftover, ignore_errors=True)
    with translate_scratch_errors(ledger.parent):
        folder = TemporaryDirectory(prefix=prefix, dir=ledger.parent, ignore_cleanup_errors=True)
    with folder as path:
        yield Path(path)


@contextmanager
def translate_scratch_errors(folder: Path) -> Iterator[None]:
    """Raise Fatal if a file in a folder cannot be written."""
    try:
        yield
    except OSError as error:
        raise Fatal(f"cannot write scratch files in {folder}: {error.strerror}") from error
