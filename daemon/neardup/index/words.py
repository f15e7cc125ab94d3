"""An index of words: which stories have a word in their title, or in their text, in an SQLite file of its own.

It is derived from the ledger and remembers how far it has come.  It holds no titles and no texts, only which words
stand in those of which story, by number, and it never drops any: of stories that were edited or removed it says what
was once true.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from neardup.core.text.normalize import tokenize
from neardup.errors import IndexDamaged
from neardup.sqlite import DAMAGED, FAILURES, explain_failure, get_code

# The words are in normal form already: the tokenizer only splits at white space.  It must keep the marks of Indic
# scripts within words, and letters that are newer than SQLite's table of Unicode, which have the category Cn there.
TABLES = """
CREATE VIRTUAL TABLE stories USING fts5(words, content = '', detail = none, columnsize = 0,
    tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* C*'");
CREATE TABLE position (ledger_id TEXT NOT NULL, number INTEGER NOT NULL, retitled INTEGER NOT NULL);
"""
BUSY_SECONDS = 5
SUFFIXES = ("", "-wal", "-shm", "-journal")  # of the files of a database


class Position(NamedTuple):
    """How far an index has come: the last story number, and the last change of a title alone."""

    number: int
    retitled: int


BEGINNING = Position(0, 0)


class WordIndex:
    """The index of the titles, or of the texts, of one ledger.  Thread-safe; its methods block.

    They raise IndexDamaged where the file turns out to be damaged: the index is then empty, and is to be filled again.
    """

    def __init__(self, path: Path, ledger_id: str) -> None:
        """Open the index, empty where there is none, or one that is damaged or of another ledger."""
        self._path, self._ledger_id, self._lock = path, ledger_id, Lock()
        try:
            self._db = self._open()
        except FAILURES as error:
            if get_code(error) not in DAMAGED:
                raise explain_failure(error, f"cannot open the index of words {path}") from error
            self._remove()
            self._db = self._open()

    def read_position(self) -> Position:
        with self._in_use() as db:
            return _read_position(db)

    def add(self, rows: Iterable[tuple[int, str]], since: Position, until: Position) -> None:
        """Add the words of stories, by number, and advance, unless another process has advanced already."""
        words = [(number, b" ".join(tokenize(text)).decode()) for number, text in rows]
        with self._in_use() as db:
            db.execute("BEGIN IMMEDIATE")
            if _read_position(db) == since:
                db.executemany("INSERT INTO stories (rowid, words) VALUES (?, ?)", words)
                db.execute("UPDATE position SET number = ?, retitled = ?", until)
            db.execute("COMMIT")

    def find_numbers(self, words: Sequence[bytes], below: int, limit: int) -> list[int]:
        """The highest story numbers below one that had all of these normalised words, descending."""
        query = " ".join(f'"{word.decode()}"' for word in words)
        with self._in_use() as db:
            rows = db.execute(
                "SELECT rowid FROM stories WHERE stories MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?",
                (query, below, limit),
            )
            return [row[0] for row in rows]

    def clear(self) -> None:
        """Empty the index, to be filled again."""
        with self._lock:
            self._begin_again()

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")
            if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'position'").fetchone():
                for statement in TABLES.split(";\n")[:-1]:
                    db.execute(statement)
                db.execute("INSERT INTO position VALUES (?, 0, 0)", (self._ledger_id,))
            (owner,) = db.execute("SELECT ledger_id FROM position").fetchone()
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        if owner != self._ledger_id:
            db.close()
            self._remove()
            return self._open()
        return db

    @contextmanager
    def _in_use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._db
            except FAILURES as error:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if get_code(error) not in DAMAGED:
                    raise explain_failure(error, f"the index of words {self._path} failed") from error
                self._begin_again()
                raise IndexDamaged(f"the index of words {self._path} was damaged: it is filled again") from error

    def _begin_again(self) -> None:
        self._db.close()
        self._remove()
        self._db = self._open()

    def _remove(self) -> None:
        for suffix in SUFFIXES:
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _read_position(db: sqlite3.Connection) -> Position:
    return Position(*db.execute("SELECT number, retitled FROM position").fetchone())
