"""The neighbours of stories among all that have vectors, nominated by their codes, and the record of a search."""

import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.verify.tiers import RETOLD, TRANSLATED
from neardup.ledger import transaction
from neardup.meaning.codes import Codes, Nearest, Places
from neardup.meaning.margins import UNFITTED, ExtremeValues
from neardup.meaning.vectors_file import OF_IDS
from neardup.pairs import Kind
from neardup.records import Language

NOMINATED = 8  # candidates of a story in each language
CODES_AT_ONCE = 20_000  # about 1 MB


class Searched(NamedTuple):
    """A story that was searched for, its backgrounds and the widest margin of its pairs of each kind."""

    story_id: int
    backgrounds: Mapping[Language, float]
    widest: Mapping[Kind, float]


def unsearched(db: sqlite3.Connection, limit: int) -> list[int]:
    """The next stories to search for; those whose code is missing wait for it."""
    rows = db.execute(
        "SELECT story_id FROM codes WHERE backgrounds IS NULL AND code IS NOT NULL ORDER BY story_id LIMIT ?", (limit,)
    )
    return [story_id for (story_id,) in rows]


def nominated(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, list[int]]:
    """The stories of the nearest codes to that of each of these stories: NOMINATED in each language."""
    rows = db.execute(f"SELECT story_id, code FROM codes WHERE {OF_IDS}", (json.dumps(list(ids)),)).fetchall()
    asked, codes = zip(*rows, strict=True)
    found = nearest(db, _array(codes))
    return {
        story_id: [other for other in some if other != story_id] for story_id, some in zip(asked, found, strict=True)
    }


def nearest(db: sqlite3.Connection, queries: Codes) -> list[list[int]]:
    """The stories of the nearest codes to each query (n, words): in each language NOMINATED, and one more.

    The one more is for a story on record, which is its own nearest.
    """
    cores = len(os.sched_getaffinity(0))
    parts = np.array_split(queries, cores)
    scans = defaultdict[Language, list[Nearest]](lambda: [Nearest(some, NOMINATED + 1) for some in parts])
    scanned = defaultdict[Language, list[Places]](list)
    scanning = list[Future[None]]()
    with ThreadPoolExecutor(cores) as pool:
        for languages, ids, codes in _codes(db):  # these are read while the last ones are scanned
            _finish(scanning)
            for language in np.unique(languages):
                chosen = languages == language
                scanning += [pool.submit(part.scan, codes[chosen]) for part in scans[language]]
                scanned[language].append(ids[chosen])
        _finish(scanning)
    found: list[list[int]] = [[] for _ in queries]
    for language, some in scans.items():
        id_of = np.concatenate(scanned[language])
        for of_query, places in zip(found, np.concatenate([part.places for part in some]), strict=True):
            of_query.extend(id_of[places[places >= 0]].tolist())
    return found


def _finish(scanning: list[Future[None]]) -> None:
    """Wait for scans; raises what one of them raised."""
    for future in scanning:
        future.result()
    scanning.clear()


def _codes(db: sqlite3.Connection) -> Iterator[tuple[npt.NDArray[np.str_], Places, Codes]]:
    """Languages, ids and codes, some at a time, in the order of the ids."""
    cursor = db.execute("SELECT language, story_id, code FROM codes WHERE code IS NOT NULL ORDER BY story_id")
    while rows := cursor.fetchmany(CODES_AT_ONCE):
        languages, ids, codes = zip(*rows, strict=True)
        yield np.array(languages), np.array(ids, np.int64), _array(codes)


def _array(codes: Sequence[bytes]) -> Codes:
    """Stored codes as an array: (n, words)."""
    return np.frombuffer(b"".join(codes), np.uint64).reshape(len(codes), -1)


def backgrounds(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, dict[Language, float]]:
    """The backgrounds of each of these stories that was searched for."""
    rows = db.execute(
        f"SELECT story_id, backgrounds FROM codes WHERE backgrounds IS NOT NULL AND {OF_IDS}", (json.dumps(list(ids)),)
    )
    return {story_id: json.loads(of_story) for story_id, of_story in rows}


def settle(db: sqlite3.Connection, searched: Iterable[Searched]) -> None:
    """Record that stories were searched for, in one transaction."""
    with transaction(db):
        db.executemany(
            "UPDATE codes SET backgrounds = ?, translated = ?, retold = ? WHERE story_id = ?",
            (
                (_stored(one.backgrounds), one.widest.get(TRANSLATED), one.widest.get(RETOLD), one.story_id)
                for one in searched
            ),
        )


def _stored(backgrounds: Mapping[Language, float]) -> str:
    return json.dumps({language: round(value, 4) for language, value in backgrounds.items()})


def widest_margins(db: sqlite3.Connection, kind: Kind) -> list[float]:
    """The widest margin of each story that was searched for and has pairs of a kind."""
    rows = db.execute(f"SELECT {kind} FROM codes WHERE {kind} IS NOT NULL ORDER BY story_id")
    return [margin for (margin,) in rows]


def distributions(db: sqlite3.Connection) -> dict[Kind, ExtremeValues]:
    """The distribution of the widest margins of each kind by its last fit; a default before the first."""
    rows = db.execute("SELECT kind, location, scale, shape FROM fitted")
    return dict(UNFITTED) | {kind: ExtremeValues(*fitted) for kind, *fitted in rows}


def keep_fits(db: sqlite3.Connection, fitted: Mapping[Kind, ExtremeValues], least: Mapping[Kind, float]) -> int:
    """Record fits; stories with the least margin of a kind or a wider one are searched for again.

    Returns how many those are.
    """
    with transaction(db):
        db.executemany("INSERT OR REPLACE INTO fitted VALUES (?, ?, ?, ?)", ((kind, *fitted[kind]) for kind in fitted))
        return db.execute(
            "UPDATE codes SET backgrounds = NULL WHERE translated >= ? OR retold >= ?",
            (least[TRANSLATED], least[RETOLD]),
        ).rowcount
