"""The file of vectors beside the ledger: SQLite, so that a batch is kept as a whole or not at all.

It is derived from the ledger and the pages, at a high price.  `vectors` holds the chunks of each story, of 8 bits a
dimension; `codes` their binary codes, by which stories are scanned.  A code is NULL until what centres it has been
fitted: the mean of its language in `means`, and the `directions`.  `backgrounds` is NULL until the story has been
searched for; then it is a JSON object by language.  `translated` and `retold` are then the widest margins of the
story's pairs of either kind that are not flagged by their words; see `meaning.margins`.  `fitted` holds the
distribution of the margins of a kind, once it has been fitted to the corpus.  `queue` holds the stories that wait; the
works of the reference go first, then the latest versions.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from neardup.errors import Fatal, Misuse
from neardup.ledger import files, transaction
from neardup.meaning.centring import Vectors
from neardup.meaning.chunks import SCHEME
from neardup.meaning.embedders import is_same_model
from neardup.sqlite import DAMAGED as DAMAGED_CODES
from neardup.sqlite import FAILURES, ThreadedConnection, code_of, failure

TABLES = """
CREATE TABLE model (name TEXT NOT NULL, scheme TEXT NOT NULL, probe BLOB NOT NULL, ledger_id TEXT NOT NULL,
    through INTEGER NOT NULL);
CREATE TABLE vectors (story_id INTEGER PRIMARY KEY, text_hash BLOB NOT NULL, chunks BLOB NOT NULL);
CREATE TABLE codes (story_id INTEGER PRIMARY KEY, language TEXT NOT NULL, code BLOB, backgrounds TEXT, translated REAL,
    retold REAL);
CREATE INDEX codes_missing ON codes (language) WHERE code IS NULL;
CREATE INDEX codes_unsearched ON codes (story_id) WHERE backgrounds IS NULL;
CREATE TABLE fitted (kind TEXT PRIMARY KEY, location REAL NOT NULL, scale REAL NOT NULL, shape REAL NOT NULL)
    WITHOUT ROWID;
CREATE TABLE means (language TEXT PRIMARY KEY, stories INTEGER NOT NULL, total BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE directions (stories INTEGER NOT NULL, vectors BLOB NOT NULL);
CREATE TABLE queue (story_id INTEGER PRIMARY KEY, number INTEGER NOT NULL);
CREATE INDEX queue_order ON queue (story_id >= 0, -number);
CREATE TABLE spent (day TEXT PRIMARY KEY, core_seconds REAL NOT NULL, texts INTEGER NOT NULL) WITHOUT ROWID;
"""
LAYOUT = 3  # of these tables
BUSY_SECONDS = 30
OF_IDS = "story_id IN (SELECT value FROM json_each(?))"
BEGIN_AGAIN = "move the file away, and the stories are embedded again"


class VectorsFile(ThreadedConnection):
    """The vectors of a ledger, off the event loop."""

    def __init__(self, path: Path) -> None:
        """Open the file; make it where there is none.  Raises Transient and Fatal."""
        super().__init__(connect(path), f"the vectors {path} failed")
        self.path = path


def connect(path: Path) -> sqlite3.Connection:
    """Open the file; make it where there is none.  Raises Transient and Fatal."""
    with _errors_translated(path):
        files.make(path)
        db = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            with transaction(db):
                if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'model'").fetchone():
                    for statement in TABLES.split(";\n")[:-1]:
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {LAYOUT}")
            if db.execute("PRAGMA user_version").fetchone() != (LAYOUT,):
                raise Misuse(f"the vectors {path} are of another release: {BEGIN_AGAIN}")
        except BaseException:
            db.close()
            raise
    return db


@contextmanager
def _errors_translated(path: Path) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        if code_of(error) in DAMAGED_CODES:
            raise Fatal(f"the vectors {path} are damaged: {BEGIN_AGAIN}") from error
        raise failure(error, f"cannot open the vectors {path}") from error
    except OSError as error:
        raise Fatal(f"cannot open the vectors {path}: {error.strerror}") from error


def claim(db: sqlite3.Connection, model: str, probe: Vectors, ledger_id: str, last: int) -> None:
    """Record in a new file which model makes the vectors of which ledger, and the number of its last version.

    Raises Misuse if they were made by another model, in other chunks, or of another ledger.
    """
    with transaction(db):
        row = db.execute("SELECT name, scheme, probe, ledger_id FROM model").fetchone()
        if row is None:
            made_by = model, SCHEME, probe.astype("<f4").tobytes(), ledger_id, last
            db.execute("INSERT INTO model VALUES (?, ?, ?, ?, ?)", made_by)
            return
    name, scheme, recorded, owner = row
    if owner != ledger_id:
        raise Misuse(f"the vectors on record are those of another ledger: {BEGIN_AGAIN}")
    if (name, scheme) != (model, SCHEME):
        raise Misuse(f"the vectors on record are of the model {name}, not {model} ({scheme}, {SCHEME}): {BEGIN_AGAIN}")
    if not is_same_model(np.frombuffer(recorded, "<f4"), probe):
        raise Misuse(f"{model} gives other vectors than those on record: it is another model now; {BEGIN_AGAIN}")


def dimensions(db: sqlite3.Connection) -> int:
    """The dimensions of the vectors; 0 before the first."""
    row = db.execute("SELECT length(probe) FROM model").fetchone()
    return row[0] // 4 if row else 0
