"""The versions of stories, read many at a time by those who index or compare them.

A new story and one with a new text have a number that was never used before: that of the change that wrote this version
(neardup.ledger.outbox).  So who has read all numbers up to one goes on after it, however long ago that was, and meets
each version once.  The numbers of former versions are gaps.
"""

import random
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.core.candidates.banding import FingerprintArrays, Numbers, copy_keys
from neardup.core.candidates.select import MAX_UNINDEXED, Found, merge_found
from neardup.ledger import AMONG, dump_list, languages
from neardup.ledger.outbox import read_last_seq
from neardup.records import BandedFingerprint, Change, Language, Story

ROWS_AT_ONCE = 10_000
ROWS_AT_A_TIME = 100_000
SELECT = "SELECT number, id, language, simhash, signature FROM stories"
# The stories whose numbers are next to those of a list, which `draw_numbers` returns.
NEXT_TO = "number IN (SELECT (SELECT min(number) FROM stories WHERE number >= value) FROM json_each(?))"


# Numbers, ids and texts.


class Numbered(NamedTuple):
    """A story, and the number of its version."""

    story_id: int
    number: int


class TextVersion(NamedTuple):
    """A story, and the hash of its text."""

    story: Story
    text_hash: bytes


def list_numbers_after(db: sqlite3.Connection, number: int, limit: int = ROWS_AT_ONCE) -> list[Numbered]:
    """The next `limit` versions after a number, in order."""
    rows = db.execute("SELECT id, number FROM stories WHERE number > ? ORDER BY number LIMIT ?", (number, limit))
    return [Numbered(*row) for row in rows]


def list_numbers_known_since(db: sqlite3.Connection, time: int) -> list[Numbered]:
    """The stories that are known since a time in milliseconds, or a later one.  It reads every row."""
    return [Numbered(*row) for row in db.execute("SELECT id, number FROM stories WHERE known_since >= ?", (time,))]


def list_numbers_of_works(db: sqlite3.Connection) -> list[Numbered]:
    """The works of the reference that have a fingerprint."""
    return [Numbered(*row) for row in db.execute("SELECT id, number FROM stories WHERE id < 0")]


def find_known_ids(db: sqlite3.Connection, ids: Collection[int]) -> set[int]:
    """Which of these stories are known."""
    found = db.execute(f"SELECT id FROM stories WHERE id {AMONG}", (dump_list(ids),))
    return {story_id for (story_id,) in found}


def find_existing_numbers(db: sqlite3.Connection, numbers: Iterable[int]) -> set[int]:
    """The numbers that still are those of stories: an edit gives a story another number."""
    rows = db.execute(f"SELECT number FROM stories WHERE number {AMONG}", (dump_list(numbers),))
    return {number for (number,) in rows}


def read_ids(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, int]:
    """The ids of the stories with these numbers; the numbers of former versions are left out."""
    return dict(db.execute(f"SELECT number, id FROM stories WHERE number {AMONG}", (dump_list(numbers),)).fetchall())


class HolderRow(NamedTuple):
    """A story that holds a passage; see `banding.copy_keys`."""

    story_id: int
    language: Language
    copy_key: int


def read_holders(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, HolderRow]:
    """The stories with these numbers; the numbers of former versions are left out."""
    rows = db.execute(
        f"SELECT number, id, language, simhash, signature FROM stories WHERE number {AMONG}", (dump_list(numbers),)
    ).fetchall()
    name_of = languages.map_names(db)
    keys = copy_keys([row[3] for row in rows], [row[4] for row in rows]).tolist()
    return {
        number: HolderRow(story_id, name_of[language], key)
        for (number, story_id, language, _, _), key in zip(rows, keys, strict=True)
    }


def read_texts(db: sqlite3.Connection, ids: Collection[int]) -> dict[int, TextVersion]:
    """The known stories among these ids, as their pages are read."""
    name_of: dict[int, Language] = languages.map_names(db)
    rows = db.execute(f"SELECT id, language, path, text_hash FROM stories WHERE id {AMONG}", (dump_list(ids),))
    return {
        story_id: TextVersion(Story(story_id, name_of[language], path), text_hash)
        for story_id, language, path, text_hash in rows
    }


def list_holders_after(
    db: sqlite3.Connection, number: int, limit: int
) -> tuple[Numbers, npt.NDArray[np.uint8], Numbers]:
    """The next `limit` stories by number: their numbers, ascending, the numbers of their languages, their copy keys."""
    rows = db.execute(
        "SELECT number, language, simhash, signature FROM stories WHERE number > ? ORDER BY number LIMIT ?",
        (number, limit),
    )
    numbers, spoken, simhashes, signatures = tuple(zip(*rows, strict=True)) or ((),) * 4
    return np.array(numbers, np.uint32), np.array(spoken, np.uint8), copy_keys(simhashes, signatures)


def list_ids_after(db: sqlite3.Connection, story_id: int, limit: int) -> tuple[Numbers, npt.NDArray[np.int64]]:
    """The next `limit` stories by id: their numbers, and their ids, ascending."""
    # SQLite reads these from the index of ids, which is a small part of the table.
    rows = db.execute("SELECT number, id FROM stories WHERE id > ? ORDER BY id LIMIT ?", (story_id, limit))
    numbers, ids = np.array(rows.fetchall(), np.int64).reshape(-1, 2).T
    return numbers.astype(np.uint32), ids


def mask_live_numbers(db: sqlite3.Connection) -> npt.NDArray[np.bool_]:
    """(last number + 1,) whether each number is that of a story; the numbers of former versions are not."""
    live = np.zeros(read_last_seq(db) + 1, bool)
    rows = db.execute("SELECT number FROM stories")  # SQLite reads them from the small index of ids
    while numbers := rows.fetchmany(ROWS_AT_A_TIME):
        live[np.array(numbers, np.int64).ravel()] = True
    return live


# Fingerprints: as arrays for nomination and to build an index, and as changes that insert them into one.


def list_fingerprints_after(db: sqlite3.Connection, number: int, limit: int) -> FingerprintArrays:
    """The first `limit` stories whose numbers are above `number`, in order of their numbers."""
    rows = db.execute(f"{SELECT} WHERE number > ? ORDER BY number LIMIT ?", (number, limit))
    return FingerprintArrays.of(rows, languages.map_names(db))


def read_existing_fingerprints(db: sqlite3.Connection, ids: Iterable[int], numbers: Iterable[int]) -> FingerprintArrays:
    """The stories with these ids or numbers, in order of their numbers; those not in the ledger are left out."""
    rows = {
        row[0]: row
        for column, wanted in (("id", ids), ("number", numbers))
        for row in db.execute(f"{SELECT} WHERE {column} {AMONG}", (dump_list(wanted),))
    }
    return FingerprintArrays.of((rows[number] for number in sorted(rows)), languages.map_names(db))


def read_fingerprints_for_nomination(
    db: sqlite3.Connection, found: Sequence[Found], applied: int
) -> tuple[FingerprintArrays, FingerprintArrays] | None:
    """The stories that lookups found, and the stories that the index lacks because it has changes up to `applied` only.

    None if the index is more than MAX_UNINDEXED changes behind the ledger, or ahead of it.
    """
    if not 0 <= read_last_seq(db) - applied <= MAX_UNINDEXED:
        return None
    return read_existing_fingerprints(db, *merge_found(found)), list_fingerprints_after(db, applied, MAX_UNINDEXED)


def read_fingerprints_for_one_text(
    db: sqlite3.Connection, found: Found, applied: int | None
) -> tuple[FingerprintArrays, FingerprintArrays, int]:
    """The stories that a lookup found, and the latest stories, up to MAX_UNINDEXED, that the index lacks.

    `applied` is the last change that the index has; None if nothing was looked up.  Returns as well how many changes
    neither of the two covers.
    """
    last = read_last_seq(db)
    first = 0 if applied is None or applied > last else applied
    latest = max(first, last - MAX_UNINDEXED)
    return (
        read_existing_fingerprints(db, *merge_found([found])),
        list_fingerprints_after(db, latest, MAX_UNINDEXED),
        latest - first,
    )


def sample_fingerprints(db: sqlite3.Connection, limit: int) -> list[BandedFingerprint]:
    """A sample of stories: those that were fingerprinted last."""
    rows = db.execute("SELECT language, simhash, signature FROM stories ORDER BY number DESC LIMIT ?", (limit,))
    name_of = languages.map_names(db)
    return [BandedFingerprint(name_of[language], *hashes) for language, *hashes in rows]


def list_inserts_after(db: sqlite3.Connection, number: int, limit: int) -> list[Change]:
    """The changes that insert the first `limit` stories above `number`, in order of their numbers."""
    return _make_inserts(db, db.execute(f"{SELECT} WHERE number > ? ORDER BY number LIMIT ?", (number, limit)))


def list_inserts(db: sqlite3.Connection, ids: Iterable[int]) -> list[Change]:
    """The changes that insert the stories with these ids, in order of their numbers."""
    return _make_inserts(db, db.execute(f"{SELECT} WHERE id {AMONG} ORDER BY number", (dump_list(ids),)))


def sample_inserts(db: sqlite3.Connection, most: int) -> list[Change]:
    """Changes that insert all stories if there are at most `most`, else nearly so many that are drawn at random."""
    (count,) = db.execute("SELECT coalesce(sum(stories), 0) FROM languages").fetchone()
    if count <= most:
        return _make_inserts(db, db.execute(f"{SELECT} ORDER BY number"))
    return _make_inserts(db, db.execute(f"{SELECT} WHERE {NEXT_TO}", (draw_numbers(db, most),)))


def draw_numbers(db: sqlite3.Connection, count: int) -> str:
    """Numbers of versions, present or former, drawn at random, as the parameter of NEXT_TO."""
    return dump_list(sorted(random.SystemRandom().choices(range(1, read_last_seq(db) + 1), k=count)))


def _make_inserts(db: sqlite3.Connection, rows: sqlite3.Cursor) -> list[Change]:
    """Rows of SELECT as changes; they are numbered 0, because they are not those of the outbox."""
    name_of = languages.map_names(db)
    return [
        Change(0, story_id, None, BandedFingerprint(name_of[language], *hashes), number)
        for number, story_id, language, *hashes in rows
    ]


# Titles: the listing's, or else the page's; a story with neither is not in the index of titles.


def list_titles_after(db: sqlite3.Connection, number: int, limit: int) -> list[tuple[int, str | None]]:
    """The next `limit` stories by number: their numbers, ascending, and their titles."""
    return db.execute(
        "SELECT number, coalesce(title, page_title) FROM stories WHERE number > ? ORDER BY number LIMIT ?",
        (number, limit),
    ).fetchall()


def list_titles_changed_after(db: sqlite3.Connection, seq: int, limit: int) -> list[tuple[int, int, str | None]]:
    """The next `limit` titles that changed after `seq` while the text did not: (seq, number, title), ascending."""
    return db.execute(
        "SELECT seq, number, coalesce(title, page_title) FROM retitled JOIN stories USING (number) WHERE seq > ?"
        " ORDER BY seq LIMIT ?",
        (seq, limit),
    ).fetchall()


def read_title_position(db: sqlite3.Connection) -> tuple[int, int]:
    """The last change, which numbers the last story, and the last change of a title alone; 0 where there is none."""
    (seq,) = db.execute("SELECT coalesce(max(seq), 0) FROM retitled").fetchone()
    return read_last_seq(db), seq


def read_titles(db: sqlite3.Connection, numbers: Sequence[int]) -> list[tuple[int, int, str | None]]:
    """Those of these stories that the ledger still has: (number, id, title), in descending order of number."""
    return db.execute(
        f"SELECT number, id, coalesce(title, page_title) FROM stories WHERE number {AMONG} ORDER BY number DESC",
        (dump_list(numbers),),
    ).fetchall()
