"""The outbox: the changes that indexes are to apply, numbered in order.

One sequence numbers the versions of stories and the changes: the number of a version is that of the change that
added it.  So a new story needs no row in `changes`, which holds only what `stories` does not show: versions that
were removed, and the removals.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from neardup.ledger import languages, transaction
from neardup.ledger.runs import get, put
from neardup.records import BandedFingerprint, Change, Language


class Version(NamedTuple):
    """A version of a story; `language` is a number, as in the table `languages`."""

    number: int
    story_id: int
    language: int
    simhash: bytes


def take(db: sqlite3.Connection, count: int) -> range:
    """Reserve the next numbers, which were never used before, within the caller's transaction."""
    first = last_seq(db) + 1
    put(db, "last_seq", str(first + count - 1))
    return range(first, first + count)


def log_leaving(db: sqlite3.Connection, gone: Sequence[tuple[int, Version]]) -> None:
    """Record which change, by its number, removes which version, within the caller's transaction."""
    db.executemany(
        "INSERT INTO changes (seq, story_id, new_language, new_simhash) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (seq) DO UPDATE SET new_language = excluded.new_language, new_simhash = excluded.new_simhash",
        [version for _, version in gone],
    )
    db.executemany(
        "INSERT INTO changes (seq, story_id, old_language, old_simhash) VALUES (?, ?, ?, ?)",
        [version._replace(number=seq) for seq, version in gone],
    )


def last_seq(db: sqlite3.Connection) -> int:
    """The number of the last change; 0 before the first."""
    return int(get(db, "last_seq") or 0)


def after(db: sqlite3.Connection, seq: int, limit: int) -> list[Change]:
    """The next changes after `seq`, in order.

    A version that was replaced since has no signature here; the change that replaced it follows.
    """
    rows = db.execute(
        "SELECT number, id, old_language, old_simhash, language, simhash, signature"
        " FROM stories LEFT JOIN changes ON seq = number WHERE number > ?1"
        " UNION ALL SELECT seq, story_id, old_language, old_simhash, new_language, new_simhash, NULL"
        " FROM changes WHERE seq > ?1 AND NOT EXISTS (SELECT 1 FROM stories WHERE number = seq)"
        " ORDER BY 1 LIMIT ?2",
        (seq, limit),
    )
    name_of = languages.names(db)
    return [_change(n, story_id, _banded(name_of, *row[:2]), _banded(name_of, *row[2:])) for n, story_id, *row in rows]


def _change(seq: int, story_id: int, old: BandedFingerprint | None, new: BandedFingerprint | None) -> Change:
    return Change(seq, story_id, old, new, seq if new else 0)


def _banded(
    name_of: Mapping[int, Language], language: int | None, simhash: bytes | None, signature: bytes | None = None
) -> BandedFingerprint | None:
    return None if language is None or simhash is None else BandedFingerprint(name_of[language], simhash, signature)


def prune(db: sqlite3.Connection, keep: int) -> None:
    """Remove all but the last `keep` changes."""
    with transaction(db):
        drop(db, keep)


def drop(db: sqlite3.Connection, keep: int) -> None:
    """Remove all but the last `keep` changes, within the caller's transaction."""
    pruned = max(last_seq(db) - keep, oldest(db) - 1)
    db.execute("DELETE FROM changes WHERE seq <= ?", (pruned,))
    put(db, "pruned", str(pruned))


def oldest(db: sqlite3.Connection) -> int:
    """The number of the oldest change still on record; one past the last where there is none."""
    return int(get(db, "pruned") or 0) + 1
