"""The log of verdicts: what moderators decided and undid, in the order of time."""

import json
import sqlite3
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from neardup.records import rfc3339

EVENTS = (
    "SELECT {event} AS event, {at} AS at, {by} AS by, decision, verdict, note, case_id, a, b, kind, verdict_id,"
    " (SELECT name FROM languages WHERE number = language) AS language,"
    " (SELECT catalogue FROM works WHERE story_id = a) AS catalogue FROM verdicts WHERE {at} >= ?1 AND {holding}"
)
ANY = "true"
ON_A_LATER_STORY = (  # in the order of the view `pairs`
    "verdict_id IN (SELECT verdict_id FROM stories s CROSS JOIN verdicts w ON s.id IN (w.a, w.b)"
    " CROSS JOIN stories m ON m.id = iif(s.id = w.a, w.b, w.a) WHERE s.id = ?2 AND (w.a = ?2 OR w.b = ?2)"
    " AND (m.sort_time, m.id) < (s.sort_time, s.id))"
)
LONG_AGO = -(2**63)

Event = dict[str, Any]


def since(db: sqlite3.Connection, time: int | None = None) -> Iterator[Event]:
    """The events at or after a time (ms), one for each verdict and each undo.

    A verdict given on several pairs at once is one event.  Members: event ("verdict" or "undo"), at (RFC 3339), by,
    decision, verdict, note, cases (the ids of the cases that the pairs were in), and pairs, each with a, b, kind,
    language and catalogue (that of the work a, None for a story).
    """
    return _events(db, ANY, LONG_AGO if time is None else time)


def of_story(db: sqlite3.Connection, story_id: int) -> list[Event]:
    """The events on the pairs of which this is the later story, also on those that a verdict says are no copies."""
    return list(_events(db, ON_A_LATER_STORY, LONG_AGO, story_id))


def of_decision(db: sqlite3.Connection, decision: int) -> list[Event]:
    """The verdict of a decision, and its undo if there was one."""
    return list(_events(db, "decision = ?2", LONG_AGO, decision))


def _events(db: sqlite3.Connection, holding: str, *values: object) -> Iterator[Event]:
    given = EVENTS.format(event="'verdict'", at="decided_at", by="moderator", holding=holding)
    undone = EVENTS.format(event="'undo'", at="undone_at", by="undone_by", holding=holding)
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    rows = cursor.execute(f"{given} UNION ALL {undone} ORDER BY at, decision, event DESC, verdict_id", values)
    for _, group in groupby(rows, lambda row: (row["decision"], row["event"], row["at"])):
        members = list(group)
        shared = {name: members[0][name] for name in ("event", "by", "decision", "verdict", "note")}
        pairs = [{name: row[name] for name in ("a", "b", "kind", "language", "catalogue")} for row in members]
        cases = sorted({row["case_id"] for row in members if row["case_id"] is not None})
        yield {"at": rfc3339(members[0]["at"]), **shared, "cases": cases, "pairs": pairs}


def as_json(event: Event) -> str:
    """An event as one line of JSON."""
    return json.dumps(event, ensure_ascii=False)
