"""The neighbours of stories among all that have vectors: nominated by their codes, ranked by their chunks."""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np

from neardup.ledger import transaction
from neardup.meaning import alignment
from neardup.meaning.centring import Vectors
from neardup.meaning.codes import Codes, Nearest, Places, restored
from neardup.meaning.margins import UNFITTED, Gumbel
from neardup.meaning.vectors import centring
from neardup.meaning.vectors_file import dimensions

NOMINATED = 50  # candidates of a story
CODES_AT_ONCE = 20_000  # about 1 MB
STORIES_AT_ONCE = 200  # whose candidates' vectors are in memory together, about 12 MB

Chunks = dict[int, Vectors]  # of stories by id, centred: (chunks, dimensions)


class Searched(NamedTuple):
    """A story that was searched for, its background and the widest margin of its pairs; see the file's tables."""

    story_id: int
    background: float
    margin: float | None


def unsearched(db: sqlite3.Connection, limit: int) -> list[int]:
    """The next stories to search for; those whose code is missing wait for it."""
    rows = db.execute(
        "SELECT story_id FROM codes WHERE background IS NULL AND code IS NOT NULL ORDER BY story_id LIMIT ?", (limit,)
    )
    return [story_id for (story_id,) in rows]


def nominated(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, list[int]]:
    """The stories of the nearest codes to that of each of these stories, in any language, the nearest first."""
    of_ids = _codes(db, "WHERE story_id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))
    asked, queries = (np.concatenate(some) for some in zip(*of_ids, strict=True))
    cores = len(os.sched_getaffinity(0))
    parts = [Nearest(some, NOMINATED + 1) for some in np.array_split(queries, cores)]  # a story is its own nearest
    scanned = list[Places]()
    with ThreadPoolExecutor(cores) as pool:
        for story_ids, codes in _codes(db, "WHERE code IS NOT NULL", ()):
            list(pool.map(Nearest.scan, parts, repeat(codes)))
            scanned.append(story_ids)
    id_of = np.concatenate(scanned)
    return {
        story_id: [other for other in id_of[places[places >= 0]].tolist() if other != story_id][:NOMINATED]
        for story_id, places in zip(asked.tolist(), np.concatenate([part.places for part in parts]), strict=True)
    }


def _codes(db: sqlite3.Connection, holding: str, values: tuple[str, ...]) -> Iterator[tuple[Places, Codes]]:
    """Ids and codes, some at a time, in the order of the ids."""
    cursor = db.execute(f"SELECT story_id, code FROM codes {holding} ORDER BY story_id", values)
    while rows := cursor.fetchmany(CODES_AT_ONCE):
        ids, codes = zip(*rows, strict=True)
        yield np.array(ids, np.int64), np.frombuffer(b"".join(codes), np.uint64).reshape(len(codes), -1)


def centred(db: sqlite3.Connection, ids: Iterable[int]) -> Chunks:
    """The centred chunks of these stories."""
    size, by = dimensions(db), centring(db)
    rows = db.execute(
        "SELECT story_id, language, chunks FROM vectors JOIN codes USING (story_id)"
        " WHERE story_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return {
        story_id: by.apply(restored(np.frombuffer(chunks, np.int8).reshape(-1, size)), language)
        for story_id, language, chunks in rows
    }


def ranked(db: sqlite3.Connection, candidates: Mapping[int, Sequence[int]]) -> dict[int, dict[int, float]]:
    """How alike stories are to their candidates, as `alignment.similarities` says: by story, then by candidate."""
    found = dict[int, dict[int, float]]()
    asked = list(candidates)
    for at in range(0, len(asked), STORIES_AT_ONCE):
        some = asked[at : at + STORIES_AT_ONCE]
        chunks = centred(db, {*some, *chain.from_iterable(candidates[story_id] for story_id in some)})
        for story_id in some:
            found[story_id] = _similarities(chunks[story_id], candidates[story_id], chunks)
    return found


def _similarities(story: Vectors, others: Sequence[int], chunks: Chunks) -> dict[int, float]:
    by_length = defaultdict[int, list[int]](list)
    for other in others:
        by_length[len(chunks[other])].append(other)
    found = dict[int, float]()
    for some in by_length.values():
        alike = alignment.similarities(story, np.stack([chunks[other] for other in some]))
        found.update(zip(some, alike.tolist(), strict=True))
    return found


def backgrounds(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, float]:
    """The background of each of these stories that was searched for."""
    rows = db.execute(
        "SELECT story_id, background FROM codes WHERE background IS NOT NULL"
        " AND story_id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(ids)),),
    )
    return dict(rows)


def settle(db: sqlite3.Connection, searched: Iterable[Searched]) -> None:
    """Record that stories were searched for, in one transaction."""
    with transaction(db):
        db.executemany(
            "UPDATE codes SET background = ?, margin = ? WHERE story_id = ?",
            ((one.background, one.margin, one.story_id) for one in searched),
        )


def widest_margins(db: sqlite3.Connection) -> list[float]:
    """The widest margin of each story that was searched for."""
    rows = db.execute("SELECT margin FROM codes WHERE margin IS NOT NULL ORDER BY story_id")
    return [margin for (margin,) in rows]


def distribution(db: sqlite3.Connection) -> Gumbel:
    """The distribution of the widest margins by the last fit; a default before the first."""
    row = db.execute("SELECT location, scale FROM fitted").fetchone()
    return Gumbel(*row) if row else UNFITTED


def keep_fit(db: sqlite3.Connection, fitted: Gumbel, stories: int, margin: float) -> int:
    """Record a fit; stories with this margin or a wider one are searched for again.  Returns how many those are."""
    with transaction(db):
        db.execute("DELETE FROM fitted")
        db.execute("INSERT INTO fitted VALUES (?, ?, ?)", (*fitted, stories))
        return db.execute("UPDATE codes SET background = NULL WHERE margin >= ?", (margin,)).rowcount
