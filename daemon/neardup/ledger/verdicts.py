"""What moderators say of flags: verdicts, how they are undone, and how good they show the flags to be.

A flag's status is the verdict that stands on its pair, or `open`; what the machine has withdrawn stays
withdrawn until it is flagged again.  Nothing is written over: what was judged or undone since a page was
made raises Conflict for who judges by that page.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence

from neardup.errors import Conflict
from neardup.ledger import candidates, now_ms, remembered_verdicts, transaction
from neardup.records import Kind, Verdict
from neardup.timestamps import rfc3339

AMONG = "IN (SELECT value FROM json_each(?))"


def judge(  # noqa: PLR0917 - a form's fields, in its order
    db: sqlite3.Connection, flag_ids: Sequence[int], verdict: Verdict, note: str, moderator: str, seen: str
) -> int:
    """Judge all of these flags, in one transaction; returns the decision, by which it can be undone.

    `seen` is their `state` when the moderator looked.  Raises Conflict where it is another by now.
    """
    with transaction(db):
        _refuse_unless(db, flag_ids, seen)
        judged = db.execute(
            f"SELECT a, b, language, kind FROM flags WHERE flag_id {AMONG} ORDER BY worst, a, b", (_json(flag_ids),)
        ).fetchall()
        if not judged:
            raise Conflict("none of these pairs is flagged any more")
        before = [found.verdict_id for a, b, *_ in judged if (found := remembered_verdicts.standing(db, (a, b)))]
        decision, now = 0, now_ms()
        for flag in judged:
            row = db.execute(
                "INSERT INTO verdicts (a, b, language, kind, verdict, note, moderator, judged_at, decision)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*flag, verdict, note, moderator, now, decision),
            ).lastrowid
            assert row is not None
            decision = decision or row
        db.execute("UPDATE verdicts SET decision = verdict_id WHERE verdict_id = ?", (decision,))
        db.execute(
            f"UPDATE flags SET status = ? WHERE flag_id {AMONG} AND status <> 'withdrawn'", (verdict, _json(flag_ids))
        )
        _settle(db, before)
    return decision


def undo(db: sqlite3.Connection, decision: int, moderator: str, seen: str) -> None:
    """Undo a decision: its flags are what the verdicts before it say, or open.

    `seen` is the `state` of its flags, `flags_of(db, decision)`.  Raises Conflict where it is another by now.
    """
    with transaction(db):
        flag_ids = flags_of(db, decision)
        _refuse_unless(db, flag_ids, seen)
        undone = [
            row[0]
            for row in db.execute(
                "UPDATE verdicts SET undone_at = ?, undone_by = ? WHERE decision = ? AND undone_at IS NULL"
                " RETURNING verdict_id",
                (now_ms(), moderator, decision),
            )
        ]
        if not undone:
            raise Conflict("this verdict was undone before")
        flags = db.execute(f"SELECT flag_id, a, b, kind FROM flags WHERE flag_id {AMONG}", (_json(flag_ids),))
        for flag_id, a, b, kind in flags.fetchall():
            found = remembered_verdicts.standing(db, (a, b))
            status = found.verdict if found is not None and remembered_verdicts.holds(found, Kind(kind)) else "open"
            db.execute("UPDATE flags SET status = ? WHERE flag_id = ? AND status <> 'withdrawn'", (status, flag_id))
        _settle(db, undone)


def forget(db: sqlite3.Connection, story_id: int) -> None:
    """Remove what was said of a story's pairs, within the caller's transaction."""
    gone = db.execute("DELETE FROM verdicts WHERE a = ?1 OR b = ?1 RETURNING verdict_id", (story_id,)).fetchall()
    db.execute("DELETE FROM kept WHERE a = ?1 OR b = ?1", (story_id,))
    _settle(db, [row[0] for row in gone])


def state(db: sqlite3.Connection, flag_ids: Iterable[int]) -> str:
    """What a verdict on these flags is based on, their statuses and latest verdicts, as a short digest.

    It is led by how often they were judged or undone: so a Conflict can tell a moderator's doing from the machine's.
    """
    rows = db.execute(
        "SELECT flag_id, status, max(verdict_id), count(judged_at) + count(undone_at) FROM flags f"
        f" LEFT JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE flag_id {AMONG} GROUP BY flag_id",
        (_json(flag_ids),),
    ).fetchall()
    digest = hashlib.blake2b(repr(rows).encode(), digest_size=8).hexdigest()
    return f"{sum(row[3] for row in rows)}-{digest}"


def flags_of(db: sqlite3.Connection, decision: int) -> list[int]:
    """The flags of the pairs of a decision."""
    rows = db.execute(
        "SELECT flag_id FROM verdicts v JOIN flags f ON f.a = v.a AND f.b = v.b WHERE decision = ? ORDER BY flag_id",
        (decision,),
    )
    return [row[0] for row in rows]


def of_decision(db: sqlite3.Connection, decision: int) -> list[sqlite3.Row]:
    """What was decided at once, the worst pair first.  Columns: a, b, verdict, moderator, undone_at."""
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        "SELECT a, b, verdict, moderator, undone_at FROM verdicts WHERE decision = ? ORDER BY verdict_id",
        (decision,),
    ).fetchall()


def of_pair(db: sqlite3.Connection, a: int, b: int) -> list[sqlite3.Row]:
    """What was said of two stories, in either order, newest first.

    Columns: verdict_id, decision, kind, verdict, note, moderator, judged_at, undone_at, undone_by.
    """
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        "SELECT verdict_id, decision, kind, verdict, note, moderator, judged_at, undone_at, undone_by FROM verdicts"
        " WHERE a = ? AND b = ? ORDER BY verdict_id DESC",
        (min(a, b), max(a, b)),
    ).fetchall()


def precision(db: sqlite3.Connection) -> list[sqlite3.Row]:
    """How many judged pairs, by the language and the kind they were flagged as, turned out to be what.

    Columns: language, kind, judged, and one for each verdict.  Of each pair the verdict that stands counts.
    """
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    each = ", ".join(f"sum(verdict = '{verdict}') AS {verdict}" for verdict in Verdict)
    return cursor.execute(
        f"SELECT name AS language, kind, count(*) AS judged, {each} FROM standing JOIN languages ON number = language"
        " GROUP BY name, kind ORDER BY name, min(CASE kind WHEN 'exact' THEN 0 WHEN 'near' THEN 1"
        " WHEN 'similar' THEN 2 ELSE 3 END)"
    ).fetchall()


def _refuse_unless(db: sqlite3.Connection, flag_ids: Sequence[int], seen: str) -> None:
    """Raises Conflict where these flags are not as they were seen; it says what a moderator has done since."""
    now = state(db, flag_ids)
    if now == seen:
        return
    then = seen.partition("-")[0]
    if then.isascii() and then.isdecimal() and int(then) >= int(now.partition("-")[0]):
        raise Conflict("these flags have changed meanwhile: look at them again")
    row = db.execute(
        "SELECT coalesce(undone_by, moderator), undone_at, judged_at, verdict, v.a, v.b FROM flags f"
        f" JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE flag_id {AMONG}"
        " ORDER BY max(judged_at, coalesce(undone_at, 0)) DESC, verdict_id DESC LIMIT 1",
        (_json(flag_ids),),
    ).fetchone()
    if row is None:
        raise Conflict("these flags are not as they were shown: look at them again")
    who, undone_at, judged_at, verdict, a, b = row
    did = f"undid the verdict {verdict} on" if undone_at else f"judged {verdict}:"
    raise Conflict(f"meanwhile, at {rfc3339(undone_at or judged_at)}, {who} {did} stories {a} and {b}")


def _settle(db: sqlite3.Connection, ended: Sequence[int]) -> None:
    """What hung on verdicts that stand no longer: contexts become others, and pairs that were kept are judged again."""
    which = (_json(ended),)
    db.execute(
        "UPDATE flags SET context = (SELECT max(verdict_id) FROM standing v"
        f" WHERE v.a IN (flags.a, flags.b) OR v.b IN (flags.a, flags.b)) WHERE context {AMONG}",
        which,
    )
    kept = db.execute(f"DELETE FROM kept WHERE verdict_id {AMONG} RETURNING a, b", which).fetchall()
    for a, b in kept:
        candidates.put(db, a, b)


def _json(values: Iterable[int]) -> str:
    return json.dumps(list(values))
