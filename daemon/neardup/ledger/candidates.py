"""Nominated pairs: those that are yet to be verified, and the near misses with their signals."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from neardup.core.verify.suppression import template_suppresses
from neardup.ledger import active_verdicts, languages, now_ms, transaction
from neardup.ledger.signals import SIGNAL_COLUMNS, columns_of, signals_of
from neardup.records import Candidate, Kind, Language, PairedStory, Signals, Verdict

SIDE = "{0}.id, {0}.path, {0}.text_hash, {0}.simhash, {0}.signature, {0}.words, {0}.shingles"
WIDTH = 7
MEASURED = ", ".join(SIGNAL_COLUMNS)


@dataclass(frozen=True, slots=True)
class VerifiedPair:
    """A verified pair on record; `kind` is None for a near miss, `verdict` where no moderator has given one."""

    language: Language
    kind: Kind | None
    signals: Signals
    verdict: Verdict | None


class Matches(NamedTuple):
    """The stories that a story was nominated with, best first; `most` is how many matches a story may have."""

    story_id: int
    ids: Sequence[int]
    most: int


def nominate(db: sqlite3.Connection, nominated: Matches) -> int:
    """Record a story's matches as candidates, within the caller's transaction; returns how many were left out.

    Neither side may have more than `most` open flags and candidates; pairs with a verdict do not count.  A story
    all of whose matches are full is still paired with the best of them, so that the thousandth copy of a template
    costs one flag and is not missed.  For the same reason, a story is paired with only one copy of what a verdict
    calls a template; that verdict suppresses the others.  A pair that is flagged already is left alone, unless its
    flag was only estimated; a near miss is verified again.
    """
    story_id, ids, most = nominated
    if not ids:
        return 0
    now, had = now_ms(), _open_matches(db, story_id, most)
    room, full = most - had, []
    on_record = _on_record(db, story_id, ids)
    template_matched = any(status is not None and template is not None for status, template in on_record.values())
    for match in ids:
        status, template = on_record[match]
        suppressed = template_suppresses(
            is_template=template is not None, has_status=status is not None, template_matched=template_matched
        )
        if status is not None:
            put(db, story_id, match)
        elif suppressed and template is not None:
            active_verdicts.suppress(db, _pair(story_id, match), template, now)
        elif room > 0 and _open_matches(db, match, most) < most:
            template_matched |= template is not None
            room -= put(db, story_id, match)
        else:
            full.append(match)
    if len(full) == len(ids) and not had:
        put(db, story_id, full.pop(0))
    return len(full)


def nominate_all(db: sqlite3.Connection, nominated: Sequence[Matches]) -> None:
    """Record the matches of several stories in one transaction."""
    with transaction(db):
        for one in nominated:
            nominate(db, one)


def _open_matches(db: sqlite3.Connection, story_id: int, most: int) -> int:
    """The number of open flags and pending candidates of a story, counted up to `most`."""
    undecided = (
        "verified_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM verdicts v WHERE v.a = t.a AND v.b = t.b AND undone_at IS NULL)"
    )
    counted = " UNION ALL ".join(
        f"SELECT 1 FROM {table} t WHERE {side} = ?1 AND {holds}"
        for table, holds in (("flags", "+status = 'open'"), ("candidates", undecided))  # +: not by the index by status
        for side in "ab"
    )
    return int(db.execute(f"SELECT count(*) FROM ({counted} LIMIT ?2)", (story_id, most)).fetchone()[0])


def _on_record(db: sqlite3.Connection, story_id: int, ids: Sequence[int]) -> dict[int, tuple[str | None, int | None]]:
    """Each match -> its status with the story, and the latest verdict that calls it a template.

    The status is that of their flag or, if that was withdrawn, the active verdict; None for a pair that has neither.
    The verdict is None for a match none of whose pairs is a template.
    """
    pair = "a = min(value, ?1) AND b = max(value, ?1)"
    rows = db.execute(
        f"SELECT value, coalesce((SELECT status FROM flags WHERE {pair} AND status <> 'withdrawn'),"
        f" (SELECT verdict FROM active_verdicts WHERE {pair})),"
        " (SELECT max(verdict_id) FROM active_verdicts WHERE (a = value OR b = value) AND verdict = ?2)"
        " FROM json_each(?3)",
        (story_id, Verdict.TEMPLATE, json.dumps(list(ids))),
    )
    return {match: (status, template) for match, status, template in rows}


def _pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


def put(db: sqlite3.Connection, one: int, other: int) -> int:
    """Make a pair a pending candidate; 1 where it was none before, 0 otherwise and for a suppressed pair."""
    return db.execute(
        "INSERT INTO candidates (a, b) SELECT ?1, ?2"
        " WHERE 2 = (SELECT count(*) FROM stories WHERE id IN (?1, ?2)) AND NOT EXISTS"
        " (SELECT 1 FROM flags WHERE a = ?1 AND b = ?2 AND status <> 'withdrawn' AND NOT estimated)"
        " AND NOT EXISTS (SELECT 1 FROM suppressed_pairs WHERE a = ?1 AND b = ?2)"
        " ON CONFLICT DO UPDATE SET verified_at = NULL WHERE verified_at IS NOT NULL",
        _pair(one, other),
    ).rowcount


def pending(db: sqlite3.Connection, after: tuple[int, int], limit: int) -> list[Candidate]:
    """The next candidates to verify after a pair, in order."""
    rows = db.execute(
        f"SELECT a.language, {SIDE.format('a')}, {SIDE.format('b')} FROM candidates c INDEXED BY candidates_pending"
        " JOIN stories a ON a.id = c.a JOIN stories b ON b.id = c.b"
        " WHERE c.verified_at IS NULL AND (c.a, c.b) > (?, ?) ORDER BY c.a, c.b LIMIT ?",
        (*after, limit),
    )
    name_of = languages.names(db)
    return [
        Candidate(name_of[row[0]], PairedStory(*row[1 : 1 + WIDTH]), PairedStory(*row[1 + WIDTH :])) for row in rows
    ]


def pending_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM candidates WHERE verified_at IS NULL").fetchone()[0])


def near_miss_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM candidates WHERE verified_at IS NOT NULL").fetchone()[0])


def take(db: sqlite3.Connection, candidate: Candidate) -> bool:
    """Remove a pending candidate; False where it is gone, or a story of it no longer has the text that was verified."""
    a, b = candidate.a, candidate.b
    return (
        db.execute(
            "DELETE FROM candidates WHERE a = ?1 AND b = ?2 AND verified_at IS NULL"
            " AND ?3 = (SELECT text_hash FROM stories WHERE id = ?1)"
            " AND ?4 = (SELECT text_hash FROM stories WHERE id = ?2)",
            (a.id, b.id, a.text_hash, b.text_hash),
        ).rowcount
        > 0
    )


def put_near_miss(db: sqlite3.Connection, candidate: Candidate, signals: Signals, now: int) -> None:
    """Record the signals of a pair that is no copy by the thresholds, but might be by others."""
    values = {"a": candidate.a.id, "b": candidate.b.id, **columns_of(signals), "verified_at": now}
    db.execute(
        f"INSERT INTO candidates ({', '.join(values)}) VALUES ({', '.join(f':{column}' for column in values)})", values
    )


def verified(db: sqlite3.Connection, since: int, until: int) -> Iterator[VerifiedPair]:
    """The flags that are not withdrawn and the near misses of [since, until) (milliseconds)."""
    rows = db.execute(
        f"SELECT language, kind, nullif(status, 'open'), {MEASURED} FROM flags"
        " WHERE status <> 'withdrawn' AND flagged_at >= ?1 AND flagged_at < ?2"
        f" UNION ALL SELECT s.language, NULL, NULL, {MEASURED} FROM candidates JOIN stories s ON s.id = a"
        " WHERE verified_at >= ?1 AND verified_at < ?2",
        (since, until),
    )
    name_of = languages.names(db)
    for language, kind, verdict, *columns in rows:
        signals = signals_of(kind, columns)
        yield VerifiedPair(name_of[language], kind, signals, Verdict(verdict) if verdict else None)
