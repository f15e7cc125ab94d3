"""The outbox of the webhooks: events that wait to be posted, each at least once.

An event is written in the transaction of what it is about, so that neither is lost without the other; new flags are
collected afterwards, from the last one that was.  A process claims an event before it posts it.  If it is killed, the
claim ends, and another attempt follows; the receiver knows the event by its id.  After MOST_ATTEMPTS an event is dead:
it stays on record with the reason, and is posted again only when it is revived.
"""

import json
import sqlite3
from collections.abc import Collection, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from neardup.ledger import AMONG, Row, dump_list, now_ms, select_named_rows, transaction
from neardup.ledger.runs import get, put
from neardup.records import ShownId, format_time, show_id

VERDICTS, FLAGS = "verdicts", "flags"  # the topics; complaints and permissions are among the verdicts
TOPICS, LAST_FLAG = "webhook_topics", "webhook_last_flag"
MOST_ATTEMPTS = 15  # over a day and a half
CLAIM_MS = 60_000
FIRST_WAIT_MS, LONGEST_WAIT_MS = 5_000, 6 * 3_600_000
FLAGS_AT_ONCE = 1_000
MATCH_MEMBERS = ("kind", "status", "matched_title", "matched_author_id", "matched_path")
NEW_FLAGS = (
    "SELECT p.*, coalesce(s.similarity, 0) AS story_similarity FROM flags f CROSS JOIN pairs p ON p.flag_id = f.flag_id"
    " LEFT JOIN similarities s ON s.story_id = p.story_id WHERE f.flag_id > ?1 AND f.flag_id <= ?2"
    " AND f.status NOT IN ('withdrawn', 'permitted') AND (?3 OR NOT f.same_author)"
    " ORDER BY p.story_id, p.severity, p.strength DESC"
)
KEY = "(SELECT value FROM meta WHERE key = 'ledger_id') || '-' || event_id"  # the id of an event
DEAD = f"due_at IS NULL AND (?1 = '[]' OR {KEY} IN (SELECT value FROM json_each(?1)))"
Event = Mapping[str, Any]


class Claimed(NamedTuple):
    """An event to be posted; `name` is unique among all ledgers, and `attempt` counts from 1."""

    event_id: int
    name: str
    topic: str
    event: Event
    attempt: int


def subscribe(db: sqlite3.Connection, topics: Collection[str]) -> None:
    """Record which topics have a webhook: their events are kept from now on, and those of others dropped."""
    listed, before = " ".join(sorted(topics)), get(db, TOPICS) or ""
    if listed == before:
        return
    with transaction(db):
        put(db, TOPICS, listed)
        if FLAGS in topics and FLAGS not in before.split():
            put(db, LAST_FLAG, str(_read_last_flag(db)))
        for topic in {VERDICTS, FLAGS}.difference(topics):
            db.execute("DELETE FROM webhook_events WHERE topic = ?", (topic,))


def is_wanted(db: sqlite3.Connection, topic: str) -> bool:
    """Whether a topic has a webhook."""
    return topic in (get(db, TOPICS) or "").split()


def announce(db: sqlite3.Connection, topic: str, event: Event) -> None:
    """Add an event to the outbox, within the caller's transaction."""
    db.execute(
        "INSERT INTO webhook_events (topic, event, due_at) VALUES (?, ?, ?)",
        (topic, json.dumps(event, ensure_ascii=False), now_ms()),
    )


def collect_flags(db: sqlite3.Connection, *, same_author: bool) -> bool:
    """Add an event for each story with new flags, those of the same author on request; returns whether there were any.

    A story's flags are those with earlier stories, in the order of `pairs`.
    """
    last = int(get(db, LAST_FLAG) or 0)
    if not is_wanted(db, FLAGS) or last >= _read_last_flag(db):
        return False
    with transaction(db):
        last, until = int(get(db, LAST_FLAG) or 0), min(last + FLAGS_AT_ONCE, _read_last_flag(db))
        rows = select_named_rows(db, NEW_FLAGS, (last, until, same_author)).fetchall()
        for _, flags in groupby(rows, lambda row: row["story_id"]):
            announce(db, FLAGS, _make_flags_event(list(flags)))
        put(db, LAST_FLAG, str(until))
    return True


def _make_flags_event(rows: list[Row]) -> Event:
    story = rows[0]
    return {
        "event": "flags",
        "at": format_time(max(row["flagged_at"] for row in rows)),
        "story_id": show_id(story["story_id"], story["story_name"]),
        "title": story["story_title"],
        "author_id": story["story_author_id"],
        "language": story["language"],
        "similarity": story["story_similarity"],
        "matches": [
            {"id": show_id(row["matched_id"], row["matched_name"])}
            | {member.removeprefix("matched_"): row[member] for member in MATCH_MEMBERS}
            for row in rows
        ],
    }


def claim(db: sqlite3.Connection, now: int) -> Claimed | None:
    """The next event that is due at a time, for this process alone during CLAIM_MS; None if none is due."""
    due = "SELECT event_id FROM webhook_events WHERE due_at <= ?1 ORDER BY event_id LIMIT 1"
    if db.execute(due, (now,)).fetchone() is None:  # reading needs no turn
        return None
    with transaction(db):
        row = db.execute(
            f"UPDATE webhook_events SET due_at = ?2, attempts = attempts + 1 WHERE event_id = ({due})"
            " RETURNING event_id, topic, event, attempts",
            (now, now + CLAIM_MS),
        ).fetchone()
    if row is None:
        return None
    event_id, topic, event, attempt = row
    return Claimed(event_id, f"{get(db, 'ledger_id')}-{event_id}", topic, json.loads(event), attempt)


def drop(db: sqlite3.Connection, event: Claimed) -> None:
    """Remove an event, which was delivered."""
    db.execute("DELETE FROM webhook_events WHERE event_id = ?", (event.event_id,))


def postpone(db: sqlite3.Connection, event: Claimed, why: str, now: int) -> bool:
    """Record why an attempt failed; returns whether another one follows, after a time that grows."""
    has_ended = event.attempt >= MOST_ATTEMPTS
    wait = min(FIRST_WAIT_MS * 3 ** (event.attempt - 1), LONGEST_WAIT_MS)
    db.execute(
        "UPDATE webhook_events SET due_at = ?, error = ? WHERE event_id = ?",
        (None if has_ended else now + wait, why, event.event_id),
    )
    return not has_ended


def list_dead(db: sqlite3.Connection, keys: Collection[str] = ()) -> list[dict[str, Any]]:
    """The dead events, the latest first, or only those with these keys, which are their ids.

    Columns: key, topic, event, attempts, error (why the last attempt failed).
    """
    rows = select_named_rows(
        db,
        f"SELECT {KEY} AS key, topic, event, attempts, error FROM webhook_events WHERE {DEAD} ORDER BY event_id DESC",
        (dump_list(keys),),
    )
    return [{**row, "event": json.loads(row["event"])} for row in rows]


def revive(db: sqlite3.Connection, keys: Collection[str], now: int) -> list[int]:
    """Have dead events posted again from `now` on, all or those with these keys; returns their `event_id`s."""
    update = f"UPDATE webhook_events SET due_at = ?2, attempts = 0 WHERE {DEAD} RETURNING event_id"
    return [row[0] for row in db.execute(update, (dump_list(keys), now))]


def count_kept(db: sqlite3.Connection, event_ids: Collection[int]) -> int:
    """How many of these events were not delivered yet."""
    query = f"SELECT count(*) FROM webhook_events WHERE event_id {AMONG}"
    return int(db.execute(query, (dump_list(event_ids),)).fetchone()[0])


def drop_dead(db: sqlite3.Connection, keys: Collection[str]) -> int:
    """Delete the dead events with these keys, all without any; returns how many they are."""
    return db.execute(f"DELETE FROM webhook_events WHERE {DEAD}", (dump_list(keys),)).rowcount


def forget(db: sqlite3.Connection, story_id: int, shown: ShownId) -> None:
    """Remove the events that name a story, by its id or as it is `shown`, within the caller's transaction.

    An author's event lists several stories, and that of a verdict its cases, which are named by stories: these lose
    only this one.
    """
    db.execute(
        "DELETE FROM webhook_events WHERE EXISTS (SELECT 1 FROM json_tree(event)"
        " WHERE key IN ('story_id', 'original_id', 'id', 'a', 'b') AND atom IN (?, ?))",
        (story_id, shown),
    )
    db.execute(
        "UPDATE webhook_events SET event = json_remove(event, found.fullkey)"
        " FROM (SELECT event_id, fullkey FROM webhook_events, json_tree(event)"
        " WHERE path IN ('$.stories', '$.cases') AND atom IN (?, ?)) found"
        " WHERE webhook_events.event_id = found.event_id",
        (story_id, shown),
    )


def count(db: sqlite3.Connection) -> tuple[int, int]:
    """The number of events that wait, and of those that are dead."""
    waiting, dead = db.execute("SELECT count(due_at), count(*) - count(due_at) FROM webhook_events").fetchone()
    return waiting, dead


def _read_last_flag(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'flags'").fetchone()
    return row[0] if row else 0
