"""The outbox: the changes that indexes are to apply, and what is known of how whole the indexes are.

One sequence numbers the versions of stories and the changes: the number of a version is that of the change that
added it.  So a new story needs no row in `changes`, which holds only what `stories` does not show: versions that
were removed, and the removals.  An index remembers the last change that it applied.  One that is behind gets the
changes after it; one that is lost, or so far behind that changes were pruned, is built again from `stories`.

A lookup in an index that is not whole misses stories.  A comparison that finds the index whole proves all lookups
before it.  A rebuild hides what was lost before, so the lookups since the last proof are then in doubt, and are made
again.  The scrub compares stories with the index, round after round.
"""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from neardup.ledger import languages, now_ms, transaction
from neardup.ledger.runs import get, put
from neardup.records import BandedFingerprint, Change, Language

PROVEN = "lookups_proven"  # the number of the last change that existed when the index was found whole
IN_DOUBT = "lookups_in_doubt"
SCRUB = "scrub"


class Version(NamedTuple):
    """A version of a story; `language` is a number, as in the table `languages`."""

    number: int
    story_id: int
    language: int
    simhash: bytes


def take_numbers(db: sqlite3.Connection, count: int) -> range:
    """Reserve the next numbers, which were never used before, within the caller's transaction."""
    first = read_last_seq(db) + 1
    put(db, "last_seq", str(first + count - 1))
    return range(first, first + count)


def read_last_seq(db: sqlite3.Connection) -> int:
    """The number of the last change; 0 before the first."""
    return int(get(db, "last_seq") or 0)


def record_removals(db: sqlite3.Connection, gone: Sequence[tuple[int, Version]]) -> None:
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


def list_changes(db: sqlite3.Connection, seq: int, limit: int) -> list[Change]:
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
    name_of = languages.map_names(db)
    return [
        Change(seq, story_id, _make_banded(name_of, *row[:2]), new, seq if new else 0)
        for seq, story_id, *row in rows
        for new in [_make_banded(name_of, *row[2:])]
    ]


def _make_banded(
    name_of: Mapping[int, Language], language: int | None, simhash: bytes | None, signature: bytes | None = None
) -> BandedFingerprint | None:
    return None if language is None or simhash is None else BandedFingerprint(name_of[language], simhash, signature)


def read_oldest_seq(db: sqlite3.Connection) -> int:
    """The number of the oldest change still on record; one past the last where there is none."""
    return int(get(db, "pruned") or 0) + 1


def prune_changes(db: sqlite3.Connection, keep: int) -> None:
    """Remove all but the last `keep` changes."""
    with transaction(db):
        pruned = max(read_last_seq(db) - keep, read_oldest_seq(db) - 1)
        db.execute("DELETE FROM changes WHERE seq <= ?", (pruned,))
        put(db, "pruned", str(pruned))


def prove_lookups(db: sqlite3.Connection) -> None:
    """Record that the lookups of all stories so far saw a whole index, or that their pairs are found another way."""
    with transaction(db):
        put(db, PROVEN, str(read_last_seq(db)))
        db.execute("DELETE FROM meta WHERE key = ?", (IN_DOUBT,))


def doubt_lookups(db: sqlite3.Connection) -> None:
    """Record that lookups since the last proof may have missed stories."""
    put(db, IN_DOUBT, "1")


def are_lookups_in_doubt(db: sqlite3.Connection) -> bool:
    """Whether lookups since the last proof may have missed stories."""
    return get(db, IN_DOUBT) is not None


def read_proven_number(db: sqlite3.Connection) -> int:
    """The last change at the last proof: stories with higher numbers were looked up since."""
    return int(get(db, PROVEN) or 0)


class Scrubbing(Struct, frozen=True):
    """The state of the scrub.

    The stories with numbers up to `number` were compared in this round, and the passage segments that begin up to
    `passages`.  `round_ended_at` is when the last round ended, in milliseconds.  Of all rounds together, `stories`
    were compared, of which `incomplete` lacked `missing` entries, and `damaged` segments were removed.  Those with the
    numbers `restored` are yet to be looked up.
    """

    number: int = 0
    passages: int = 0
    round_ended_at: int | None = None
    stories: int = 0
    incomplete: int = 0
    missing: int = 0
    damaged: int = 0
    restored: Sequence[int] = ()

    def end_round(self) -> "Scrubbing":
        """The state at the end of a round."""
        return replace(self, number=0, round_ended_at=now_ms())


def read_scrubbing(db: sqlite3.Connection) -> Scrubbing:
    """How far the scrub has come, and what it has found."""
    record = get(db, SCRUB)
    return Scrubbing(**json.loads(record)) if record else Scrubbing()


def put_scrubbing(db: sqlite3.Connection, state: Scrubbing) -> None:
    put(db, SCRUB, json.dumps(asdict(state)))
