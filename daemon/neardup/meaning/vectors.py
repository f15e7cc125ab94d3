"""The vectors on record, in an SQLite file beside the ledger, so that a batch is kept as a whole or not at all.

The file is derived from the ledger and the pages, at a high price.  `vectors` holds the chunks of each story, of 8 bits
a dimension; `codes` their binary codes, by which stories are scanned.  A code is NULL until what centres it has been
fitted: the mean of its language in `means`, and the `directions`.  `backgrounds` is NULL until the story has been
searched for; then it is a JSON object by language.  `translated` and `retold` are then the widest margins of the
story's pairs of either kind that are not flagged by their words; see neardup.meaning.margins.  `fitted` holds the
distribution of the margins of a kind, once it has been fitted to the corpus.  `queue` holds the stories that wait to be
embedded; the works of the reference go first, then the latest versions.  `spent` is what each day has cost.
"""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import numpy as np
from msgspec import Struct

from neardup.config import Config, Meaning
from neardup.core.text.chunks import SCHEME
from neardup.errors import Fatal, Misuse, VectorsDamaged
from neardup.ledger import Ledger, files, read, runs, transaction
from neardup.ledger.outbox import read_last_seq
from neardup.ledger.versions import Numbered
from neardup.meaning.codes import (
    Centring,
    Sums,
    Vectors,
    compute_codes,
    find_widest_directions,
    fit_centring,
    quantise,
    restore,
    scale_to_unit,
)
from neardup.meaning.embedders import Embedder, is_same_model, open_embedder, probe
from neardup.records import Language
from neardup.sqlite import DAMAGED as DAMAGED_CODES
from neardup.sqlite import FAILURES, ThreadedConnection, explain_failure, get_code

TABLES = """
CREATE TABLE model (name TEXT NOT NULL, scheme TEXT NOT NULL, probe BLOB NOT NULL, ledger_id TEXT NOT NULL,
    through INTEGER NOT NULL);
CREATE TABLE vectors (story_id INTEGER PRIMARY KEY, text_hash BLOB NOT NULL, chunks BLOB NOT NULL,
    checksum INTEGER NOT NULL);
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
LAYOUT = 4  # of these tables
BUSY_SECONDS = 30
STORED = "story_id, chunks, checksum"  # the columns of `check_chunks`
OF_IDS = "story_id IN (SELECT value FROM json_each(?))"
BEGIN_AGAIN = "move the file away, and the stories are embedded again"
QUEUE_START = (-1, 0)  # before every place in the queue
ROWS_AT_ONCE = 2_000
BEFORE_ALL = -(1 << 63)  # less than every id of a story
GROWTH = 1.5  # a language has its mean fitted again when it has so many times the stories that it had then ...
FITTED_STORIES = 10_000  # ... until it had so many, whose mean changes no more
ENOUGH_GROWN = f"min({FITTED_STORIES}, {GROWTH} * coalesce(stories, 0))"
SAMPLED = 1_000  # stories of each language, of whose vectors the directions are fitted


class VectorsFile(ThreadedConnection):
    """The vectors of a ledger, off the event loop."""

    def __init__(self, path: Path) -> None:
        """Open the file; make it where there is none.  Raises Transient and Fatal."""
        super().__init__(connect(path), f"the vectors {path} failed")
        self.path = path


def connect(path: Path) -> sqlite3.Connection:
    """Open the file; make it where there is none.  Raises Transient and Fatal."""
    try:
        files.make_file(path)
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
    except FAILURES as error:
        if get_code(error) in DAMAGED_CODES:
            raise Fatal(f"the vectors {path} are damaged: {BEGIN_AGAIN}") from error
        raise explain_failure(error, f"cannot open the vectors {path}") from error
    except OSError as error:
        raise Fatal(f"cannot open the vectors {path}: {error.strerror}") from error
    return db


def bind_to_model(db: sqlite3.Connection, model: str, probe: Vectors, ledger_id: str, last: int) -> None:
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


def read_dimensions(db: sqlite3.Connection) -> int:
    """The dimensions of the vectors; 0 before the first."""
    row = db.execute("SELECT length(probe) FROM model").fetchone()
    return row[0] // 4 if row else 0


class Waiting(NamedTuple):
    """A story in the queue, and its place there: works before stories, then the latest version first."""

    story_id: int
    place: tuple[int, int]


def read_considered(db: sqlite3.Connection) -> int:
    """The number of the last version that was put into the queue."""
    return int(db.execute("SELECT through FROM model").fetchone()[0])


def enqueue(db: sqlite3.Connection, versions: Iterable[Numbered], through: int | None = None) -> None:
    """Put stories into the queue, whose versions up to a number are then considered."""
    with transaction(db):
        db.executemany("INSERT OR REPLACE INTO queue VALUES (?, ?)", versions)
        if through is not None:
            db.execute("UPDATE model SET through = ?", (through,))


def read_waiting(db: sqlite3.Connection, place: tuple[int, int], limit: int) -> list[Waiting]:
    """The next stories of the queue after a place."""
    rows = db.execute(
        "SELECT story_id, story_id >= 0, -number FROM queue WHERE (story_id >= 0, -number) > (?, ?)"
        " ORDER BY story_id >= 0, -number LIMIT ?",
        (*place, limit),
    )
    return [Waiting(story_id, (kind, number)) for story_id, kind, number in rows]


def drop_from_queue(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Take stories out of the queue, within the caller's transaction."""
    db.executemany("DELETE FROM queue WHERE story_id = ?", ((story_id,) for story_id in ids))


def count_waiting(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM queue").fetchone()[0])


def add_spending(db: sqlite3.Connection, day: str, core_seconds: float, texts: int) -> None:
    """Add to what a day has cost, within the caller's transaction."""
    db.execute(
        "INSERT INTO spent VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET"
        " core_seconds = core_seconds + excluded.core_seconds, texts = texts + excluded.texts",
        (day, core_seconds, texts),
    )


def read_spending(db: sqlite3.Connection, day: str) -> tuple[float, int]:
    """The core seconds and the texts that a day has cost."""
    row = db.execute("SELECT core_seconds, texts FROM spent WHERE day = ?", (day,)).fetchone()
    return row or (0.0, 0)


class Embedded(NamedTuple):
    """The vectors of a story's chunks, (chunks, dimensions), and the hash of the text that they were made of."""

    story_id: int
    language: Language
    text_hash: bytes
    chunks: Vectors


def put(db: sqlite3.Connection, made: Sequence[Embedded]) -> None:
    """Write the vectors of stories, which then wait no longer."""
    with transaction(db):
        for story in made:
            chunks = quantise(story.chunks).tobytes()
            row = story.story_id, story.text_hash, chunks, crc32(chunks)
            db.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", row)
            db.execute(
                "INSERT OR REPLACE INTO codes (story_id, language) VALUES (?, ?)", (story.story_id, story.language)
            )
        drop_from_queue(db, [story.story_id for story in made])


def check_chunks(story_id: int, chunks: bytes, checksum: int) -> bytes:
    """The chunks of a row, whose columns are STORED.  Raises VectorsDamaged: SQLite itself has no checksums."""
    if crc32(chunks) != checksum:
        raise VectorsDamaged(story_id)
    return chunks


def begin_again(db: sqlite3.Connection, story_id: int) -> None:
    """Remove the vectors of a story, and put it at the end of the queue."""
    remove(db, [story_id])
    enqueue(db, [Numbered(story_id, 0)])


def read_held(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[Language, bytes]]:
    """The language and the text hash of each of these stories that has vectors."""
    rows = db.execute(
        f"SELECT story_id, language, text_hash FROM vectors JOIN codes USING (story_id) WHERE {OF_IDS}",
        (json.dumps(list(ids)),),
    )
    return {story_id: (language, text_hash) for story_id, language, text_hash in rows}


def count_stories(db: sqlite3.Connection) -> dict[Language, int]:
    return dict(db.execute("SELECT language, count(*) FROM codes GROUP BY language ORDER BY language").fetchall())


def read_ids_after(db: sqlite3.Connection, last: int) -> list[int]:
    """The next stories that have vectors, in the order of their ids."""
    rows = db.execute("SELECT story_id FROM codes WHERE story_id > ? ORDER BY story_id LIMIT ?", (last, ROWS_AT_ONCE))
    return [story_id for (story_id,) in rows]


def remove(db: sqlite3.Connection, ids: Iterable[int]) -> None:
    """Remove stories, also from the queue."""
    keys = [(story_id,) for story_id in ids]
    with transaction(db):
        for table in ("vectors", "codes", "queue"):
            db.executemany(f"DELETE FROM {table} WHERE story_id = ?", keys)


def fit_means(db: sqlite3.Connection) -> list[Language]:
    """Fit the means of the languages that have grown, whose codes are then to be made again; returns these languages.

    The mean of a language and the loss of its codes are one transaction, so that no code is left of an earlier mean.
    """
    grown = db.execute(
        f"SELECT language FROM (SELECT language, count(*) AS held FROM codes GROUP BY language) LEFT JOIN means"
        f" USING (language) WHERE held > {ENOUGH_GROWN}"
    ).fetchall()
    for (language,) in grown:
        with transaction(db):
            stories, total = 0, np.zeros(read_dimensions(db), np.float64)
            for chunks in _read_chunks(db, language):
                stories += 1
                total += scale_to_unit(chunks.mean(axis=0, keepdims=True))[0]
            mean = language, stories, total.astype("<f4").tobytes()
            db.execute("INSERT OR REPLACE INTO means VALUES (?, ?, ?)", mean)
            db.execute("UPDATE codes SET code = NULL WHERE language = ?", (language,))
    return [language for (language,) in grown]


def fit_directions(db: sqlite3.Connection) -> bool:
    """Fit the directions to remove if the corpus has grown, whose codes are then to be made again; returns whether.

    They are fitted to the centred vectors of a sample.  As with means, the loss of the codes is in the transaction.
    """
    (stories,) = db.execute("SELECT count(*) FROM codes").fetchone()
    (enough,) = db.execute(f"SELECT {ENOUGH_GROWN} FROM (SELECT max(stories) AS stories FROM directions)").fetchone()
    if stories <= enough:
        return False
    size = read_dimensions(db)
    by_means = fit_centring(_read_sums(db), np.zeros((0, size), np.float32))
    sample = [
        compute_story_vector(chunks, language, by_means)
        for (language,) in db.execute("SELECT DISTINCT language FROM codes").fetchall()
        for chunks in _read_chunks(db, language, SAMPLED)
    ]
    found = find_widest_directions(np.stack(sample))
    with transaction(db):
        db.execute("DELETE FROM directions")
        db.execute("INSERT INTO directions VALUES (?, ?)", (stories, found.astype("<f4").tobytes()))
        db.execute("UPDATE codes SET code = NULL")
    return True


def _read_chunks(db: sqlite3.Connection, language: Language, limit: int = -1) -> Iterator[Vectors]:
    size = read_dimensions(db)
    rows = db.execute(
        f"SELECT {STORED} FROM codes JOIN vectors USING (story_id) WHERE language = ? LIMIT ?", (language, limit)
    )
    for stored in rows:
        yield restore(np.frombuffer(check_chunks(*stored), np.int8).reshape(-1, size))


def read_centring(db: sqlite3.Connection) -> Centring:
    """The centring by the means and directions on record."""
    row = db.execute("SELECT vectors FROM directions").fetchone()
    return fit_centring(_read_sums(db), np.frombuffer(row[0] if row else b"", "<f4").reshape(-1, read_dimensions(db)))


def _read_sums(db: sqlite3.Connection) -> dict[Language, Sums]:
    rows = db.execute("SELECT language, stories, total FROM means")
    return {language: Sums(stories, np.frombuffer(total, "<f4")) for language, stories, total in rows}


def make_codes(db: sqlite3.Connection) -> int:
    """Make the next codes that are missing, of centred vectors; returns how many were made, 0 at the end."""
    size, centred_by = read_dimensions(db), read_centring(db)
    rows = db.execute(
        f"SELECT language, {STORED} FROM codes JOIN vectors USING (story_id) WHERE code IS NULL LIMIT ?",
        (ROWS_AT_ONCE,),
    ).fetchall()
    made = []
    for language, story_id, *stored in rows:
        vectors = restore(np.frombuffer(check_chunks(story_id, *stored), np.int8).reshape(-1, size))
        made.append((compute_story_vector(vectors, language, centred_by), story_id))
    if made:
        codes = compute_codes(np.stack([vector for vector, _ in made]))
        with transaction(db):
            db.executemany(
                "UPDATE codes SET code = ? WHERE story_id = ?",
                ((code.tobytes(), story_id) for code, (_, story_id) in zip(codes, made, strict=True)),
            )
    return len(made)


def compute_story_vector(chunks: Vectors, language: Language, centring: Centring) -> Vectors:
    """The vector of a whole story, (dimensions,): the mean of its centred chunks."""
    vector: Vectors = scale_to_unit(centring.apply(chunks, language).mean(axis=0, keepdims=True))[0]
    return vector


class Parts(Struct, frozen=True):
    """The open parts: the ledger for reading, the vectors and the embedder."""

    section: Meaning
    ledger: Ledger
    vectors: VectorsFile
    embedder: Embedder


@asynccontextmanager
async def open_parts(config: Config) -> AsyncIterator[Parts]:
    """Open what embedding needs, and check that the model is the one that made the vectors on record.

    Raises Misuse without [meaning], and for another model; Transient if the model does not answer.
    """
    if config.meaning is None:
        raise Misuse("the configuration has no [meaning]: no story is embedded")
    embedder = await asyncio.to_thread(open_embedder, config.meaning)
    with closing(Ledger(config.ledger.path, read)) as ledger:
        probe_vector, ledger_id = await probe(embedder), await ledger.do(runs.get, "ledger_id") or ""
        with closing(VectorsFile(files.name_vectors_file(config.ledger.path))) as file:
            await file.do(bind_to_model, embedder.model, probe_vector, ledger_id, await ledger.do(read_last_seq))
            yield Parts(config.meaning, ledger, file, embedder)
