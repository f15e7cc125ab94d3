"""The vectors on record: writing them, and the means of languages that centre them."""

import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from neardup.ledger import transaction
from neardup.meaning import queue
from neardup.meaning.centring import Centring, Sums, Vectors, fit, unit, widest_directions
from neardup.meaning.codes import codes_of, quantised, restored
from neardup.meaning.vectors_file import dimensions
from neardup.records import Language

ROWS_AT_ONCE = 2_000
BEFORE_ALL = -(1 << 63)  # less than every id of a story
GROWTH = 1.5  # a language has its mean fitted again when it has so many times the stories that it had then ...
FITTED_STORIES = 10_000  # ... until it had so many, whose mean changes no more
ENOUGH = f"min({FITTED_STORIES}, {GROWTH} * coalesce(stories, 0))"
SAMPLED = 1_000  # stories of each language, of whose vectors the directions are fitted


class Embedded(NamedTuple):
    """The vectors of a story's chunks, (chunks, dimensions), and the hash of the text that they were made of."""

    story_id: int
    language: Language
    text_hash: bytes
    chunks: Vectors


def put(db: sqlite3.Connection, made: Sequence[Embedded]) -> None:
    """Write the vectors of stories, which then wait no longer, within the caller's transaction."""
    db.executemany(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)",
        ((one.story_id, one.text_hash, quantised(one.chunks).tobytes()) for one in made),
    )
    db.executemany(
        "INSERT OR REPLACE INTO codes (story_id, language) VALUES (?, ?)",
        ((one.story_id, one.language) for one in made),
    )
    queue.drop(db, [one.story_id for one in made])


def held(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, tuple[Language, bytes]]:
    """The language and the text hash of each of these stories that has vectors."""
    rows = db.execute(
        "SELECT story_id, language, text_hash FROM vectors JOIN codes USING (story_id)"
        " WHERE story_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {story_id: (language, text_hash) for story_id, language, text_hash in rows}


def counts(db: sqlite3.Connection) -> dict[Language, int]:
    """How many stories of each language have vectors."""
    return dict(db.execute("SELECT language, count(*) FROM codes GROUP BY language ORDER BY language").fetchall())


def ids_after(db: sqlite3.Connection, last: int) -> list[int]:
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
        f" USING (language) WHERE held > {ENOUGH}"
    ).fetchall()
    for (language,) in grown:
        with transaction(db):
            stories, total = 0, np.zeros(dimensions(db), np.float64)
            for chunks in _chunks_of(db, language):
                stories += 1
                total += unit(chunks.mean(axis=0, keepdims=True))[0]
            mean = language, stories, total.astype("<f4").tobytes()
            db.execute("INSERT OR REPLACE INTO means VALUES (?, ?, ?)", mean)
            db.execute("UPDATE codes SET code = NULL WHERE language = ?", (language,))
    return [language for (language,) in grown]


def fit_directions(db: sqlite3.Connection) -> bool:
    """Fit the directions to remove if the corpus has grown, whose codes are then to be made again; returns whether.

    They are fitted to the centred vectors of a sample.  As with means, the loss of the codes is in the transaction.
    """
    (stories,) = db.execute("SELECT count(*) FROM codes").fetchone()
    (enough,) = db.execute(f"SELECT {ENOUGH} FROM (SELECT max(stories) AS stories FROM directions)").fetchone()
    if stories <= enough:
        return False
    size = dimensions(db)
    by_means = fit(_sums(db), np.zeros((0, size), np.float32))
    sample = [
        story_vector(chunks, language, by_means)
        for (language,) in db.execute("SELECT DISTINCT language FROM codes").fetchall()
        for chunks in _chunks_of(db, language, SAMPLED)
    ]
    found = widest_directions(np.stack(sample))
    with transaction(db):
        db.execute("DELETE FROM directions")
        db.execute("INSERT INTO directions VALUES (?, ?)", (stories, found.astype("<f4").tobytes()))
        db.execute("UPDATE codes SET code = NULL")
    return True


def _chunks_of(db: sqlite3.Connection, language: Language, limit: int = -1) -> Iterator[Vectors]:
    size = dimensions(db)
    rows = db.execute(
        "SELECT chunks FROM codes JOIN vectors USING (story_id) WHERE language = ? LIMIT ?", (language, limit)
    )
    for (chunks,) in rows:
        yield restored(np.frombuffer(chunks, np.int8).reshape(-1, size))


def centring(db: sqlite3.Connection) -> Centring:
    """The centring by the means and directions on record."""
    row = db.execute("SELECT vectors FROM directions").fetchone()
    return fit(_sums(db), np.frombuffer(row[0] if row else b"", "<f4").reshape(-1, dimensions(db)))


def _sums(db: sqlite3.Connection) -> dict[Language, Sums]:
    rows = db.execute("SELECT language, stories, total FROM means")
    return {language: Sums(stories, np.frombuffer(total, "<f4")) for language, stories, total in rows}


def make_codes(db: sqlite3.Connection) -> int:
    """Make the next codes that are missing, of centred vectors; returns how many were made, 0 at the end."""
    size, centred_by = dimensions(db), centring(db)
    rows = db.execute(
        "SELECT story_id, language, chunks FROM codes JOIN vectors USING (story_id) WHERE code IS NULL LIMIT ?",
        (ROWS_AT_ONCE,),
    ).fetchall()
    made = []
    for story_id, language, chunks in rows:
        vectors = restored(np.frombuffer(chunks, np.int8).reshape(-1, size))
        made.append((story_vector(vectors, language, centred_by), story_id))
    if made:
        codes = codes_of(np.stack([vector for vector, _ in made]))
        with transaction(db):
            db.executemany(
                "UPDATE codes SET code = ? WHERE story_id = ?",
                ((code.tobytes(), story_id) for code, (_, story_id) in zip(codes, made, strict=True)),
            )
    return len(made)


def story_vector(chunks: Vectors, language: Language, centring: Centring) -> Vectors:
    """The vector of a whole story, (dimensions,): the mean of its centred chunks."""
    vector: Vectors = unit(centring.apply(chunks, language).mean(axis=0, keepdims=True))[0]
    return vector
