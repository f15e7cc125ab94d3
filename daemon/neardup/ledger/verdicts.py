"""The verdicts of moderators: giving and undoing them, how precise they show the flags to be, and their log.

A flag's status is the active verdict on its pair, or `open`; a withdrawn flag stays withdrawn until its pair is
flagged again.  No verdict or undo changes flags that are no longer as they were shown: the moderator gets a Conflict.
Verdicts given at once are one decision, which is undone as a whole.  The log keeps them all, until a story of the pair
is erased.

A share of the decided cases is judged again, by one who is not shown the first verdict.  The cases are chosen by a hash
of their ids (multiplicative hashing: Knuth, The Art of Computer Programming, volume 3, 6.4), so that a larger share
adds cases and drops none, and nothing in a case decides whether it is chosen.  A case with one verdict on all of its
pairs is reviewed once, by a moderator who gave no verdict on it.  Where the two verdicts differ, the case is open
again, for a third moderator.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from typing import Any, NamedTuple

from neardup.core.verify.suppression import find_status
from neardup.errors import Conflict
from neardup.ledger import (
    AMONG,
    Row,
    authors,
    candidates,
    cases,
    complaints,
    dump_list,
    join_conditions,
    languages,
    now_ms,
    select_named_rows,
    similarities,
    story_rows,
    transaction,
    verification,
    webhook_events,
)
from neardup.records import DECIDING, Kind, Language, Verdict, format_time, parse_milliseconds

EVENTS = (
    "SELECT {event} AS event, {at} AS at, {by} AS by, decision, verdict, note, case_id, a, b, kind, verdict_id,"
    " (SELECT name FROM languages WHERE number = language) AS language,"
    " (SELECT catalogue FROM works WHERE story_id = a) AS catalogue FROM verdicts WHERE {at} >= ?1 AND {where}"
)
ANY = "true"
ON_A_LATER_STORY = (  # in the order of the view `pairs`
    "verdict_id IN (SELECT verdict_id FROM stories s CROSS JOIN verdicts w ON s.id IN (w.a, w.b)"
    " CROSS JOIN stories m ON m.id = iif(s.id = w.a, w.b, w.a) WHERE s.id = ?2 AND (w.a = ?2 OR w.b = ?2)"
    " AND (m.sort_time, m.id) < (s.sort_time, s.id))"
)
LONG_AGO = -(2**63)
Event = dict[str, Any]
HASH = "abs(case_id) % 1000003 * 2654435761 % 4294967296"
HASHES = 2**32
ON_THE_CASE = "FROM flags f CROSS JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE f.case_id = cases.case_id"


class DecidedPair(NamedTuple):
    """A pair a < b as a verdict keeps it; `language` is a number, and `case_id` the case that its flag is in."""

    a: int
    b: int
    language: int | None
    kind: Kind
    severity: int
    joins_clusters: bool
    case_id: int | None = None


def decide(  # noqa: PLR0917 - the fields of a form, in their order
    db: sqlite3.Connection,
    flag_ids: Sequence[int],
    verdict: Verdict,
    note: str,
    moderator: str,
    seen: str,
    shown: Sequence[int] = (),
) -> int:
    """Give all of these flags a verdict, in one transaction; returns the number of the decision, for `undo`.

    `seen` is the `state` of the flags that the moderator was shown: these, or those `shown`.  Raises Conflict where it
    has changed, and where another moderator holds the case of a flag.
    """
    with transaction(db):
        cases.refuse_if_leased(db, flag_ids, moderator)
        refuse_if_changed(db, shown or flag_ids, seen)
        return give(db, flag_ids, verdict, note, moderator)


def give(db: sqlite3.Connection, flag_ids: Sequence[int], verdict: Verdict, note: str, moderator: str) -> int:
    """Give these flags a verdict, within the caller's transaction; returns the number of the decision.

    Those that it opens again become candidates, as those of an `undo` do.
    """
    rows = db.execute(
        f"SELECT a, b, language, kind, severity, joins_clusters, case_id FROM flags WHERE flag_id {AMONG}"
        " ORDER BY severity, strength DESC, a, b",
        (dump_list(flag_ids),),
    )
    pairs = [DecidedPair(*row) for row in rows]
    if not pairs:
        raise Conflict("none of these pairs is flagged any more")
    before = {(pair.a, pair.b): verification.read_active_verdict(db, (pair.a, pair.b)) for pair in pairs}
    replaced = {pair: verdict.verdict_id for pair, verdict in before.items() if verdict is not None}
    decision = put(db, pairs, verdict, note, moderator, now_ms())
    status = verdict if verdict in DECIDING else "open"
    db.execute(
        f"UPDATE flags SET status = ? WHERE flag_id {AMONG} AND status <> 'withdrawn'", (status, dump_list(flag_ids))
    )
    candidates.request_verification(db, list(replaced))
    _update_dependents(db, replaced.values())
    similarities.refresh(db)
    announce(db, decision, "verdict")
    complaints.follow_verdicts(db, [(pair.a, pair.b) for pair in pairs], moderator)
    return decision


def put(  # noqa: PLR0917 - the columns of the table, in their order
    db: sqlite3.Connection, pairs: Iterable[DecidedPair], verdict: Verdict, note: str, moderator: str, decided_at: int
) -> int:
    """Record a verdict on pairs as one decision, within the caller's transaction; returns the decision's number."""
    decision = 0
    for pair in pairs:
        verdict_id = db.execute(
            "INSERT INTO verdicts (a, b, language, kind, severity, joins_clusters, case_id, verdict, note, moderator,"
            " decided_at, decision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*pair, verdict, note, moderator, decided_at, decision),
        ).lastrowid
        assert verdict_id is not None
        decision = decision or verdict_id  # a decision has the number of its first verdict
    db.execute("UPDATE verdicts SET decision = verdict_id WHERE verdict_id = ?", (decision,))
    return decision


def undo(db: sqlite3.Connection, decision: int, moderator: str, seen: str) -> None:
    """Undo a decision: its flags return to the verdicts before it, or are open again.

    A flag is verified as long as it is open.  So those that are open again become candidates: other passages may have
    become common since.
    `seen` is the `state` of its flags, `flags_of(db, decision)`.  Raises Conflict where it has changed, and where a
    later decision on one of its pairs stands, which it names.
    """
    with transaction(db):
        flag_ids = list_flags(db, decision)
        refuse_if_changed(db, flag_ids, seen)
        if later := find_built_upon(db, decision):
            what = f"{later['moderator']} judged {later['verdict']}: stories {later['a']} and {later['b']}"
            raise Conflict(f"later, at {format_time(later['decided_at'])}, {what}; undo that before")
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
        flags = db.execute(
            f"SELECT flag_id, a, b, kind FROM flags WHERE flag_id {AMONG}", (dump_list(flag_ids),)
        ).fetchall()
        for flag_id, a, b, kind in flags:
            status = find_status(kind, verification.read_active_verdict(db, (a, b)))
            db.execute("UPDATE flags SET status = ? WHERE flag_id = ? AND status <> 'withdrawn'", (status, flag_id))
        candidates.request_verification(db, [(a, b) for _, a, b, _ in flags])
        _update_dependents(db, undone)
        similarities.refresh(db)
        announce(db, decision, "undo")
        complaints.follow_verdicts(db, [(a, b) for _, a, b, _ in flags], moderator)


def forget(db: sqlite3.Connection, story_id: int) -> None:
    """Remove the verdicts on a story's pairs, within the caller's transaction."""
    db.execute(
        "DELETE FROM second_reviews WHERE case_id = ?1"
        " OR case_id IN (SELECT case_id FROM verdicts WHERE a = ?1 OR b = ?1)",
        (story_id,),
    )
    gone = db.execute("DELETE FROM verdicts WHERE a = ?1 OR b = ?1 RETURNING verdict_id", (story_id,)).fetchall()
    db.execute("DELETE FROM suppressed_pairs WHERE a = ?1 OR b = ?1", (story_id,))
    _update_dependents(db, [row[0] for row in gone])


def identify_state(db: sqlite3.Connection, flag_ids: Iterable[int]) -> str:
    """A short digest of the statuses and latest verdicts of these flags, to detect changes by.

    It starts with the number of verdicts and undos: by it a Conflict knows moderators' changes from the program's.
    """
    count, listed = db.execute(
        "SELECT count(decided_at) + count(undone_at),"
        " group_concat(flag_id || status || ':' || ifnull(verdict_id, '') || (undone_at IS NULL)) FROM flags f"
        f" LEFT JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE flag_id {AMONG}",
        (dump_list(flag_ids),),
    ).fetchone()
    return f"{count}-{hashlib.blake2b((listed or '').encode(), digest_size=8).hexdigest()}"


def refuse_if_changed(db: sqlite3.Connection, flag_ids: Sequence[int], seen: str) -> None:
    """Raise Conflict if the state of these flags is not `seen` any more; it says what a moderator did since."""
    current = identify_state(db, flag_ids)
    if current == seen:
        return
    seen_count = seen.partition("-")[0]  # any text: `seen` is from a form
    if seen_count.isascii() and seen_count.isdecimal() and int(seen_count) >= int(current.partition("-")[0]):
        raise Conflict("these flags have changed meanwhile: look at them again")
    row = db.execute(
        "SELECT coalesce(undone_by, moderator), undone_at, decided_at, verdict, v.a, v.b FROM flags f"
        f" JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE flag_id {AMONG}"
        " ORDER BY max(decided_at, coalesce(undone_at, 0)) DESC, verdict_id DESC LIMIT 1",
        (dump_list(flag_ids),),
    ).fetchone()
    if row is None:
        raise Conflict("these flags are not as they were shown: look at them again")
    who, undone_at, decided_at, verdict, a, b = row
    did = f"undid the verdict {verdict} on" if undone_at else f"judged {verdict}:"
    shown = story_rows.read_shown_ids(db, (a, b))
    raise Conflict(
        f"meanwhile, at {format_time(undone_at or decided_at)}, {who} {did} stories {shown[a]} and {shown[b]}"
    )


def _update_dependents(db: sqlite3.Connection, verdict_ids: Iterable[int]) -> None:
    """Update what depended on verdicts that are no longer active.

    A flag that is shown with one of them, as its context, gets the latest verdict on another pair of its stories.  The
    pairs that these verdicts suppressed become candidates again.
    """
    which = (dump_list(verdict_ids),)
    db.execute(
        "UPDATE flags SET context = (SELECT max(verdict_id) FROM active_verdicts v"
        f" WHERE v.a IN (flags.a, flags.b) OR v.b IN (flags.a, flags.b)) WHERE context {AMONG}",
        which,
    )
    released = db.execute(f"DELETE FROM suppressed_pairs WHERE verdict_id {AMONG} RETURNING a, b", which).fetchall()
    for a, b in released:
        candidates.put(db, a, b)


def list_flags(db: sqlite3.Connection, decision: int) -> list[int]:
    """The ids of the flags on the pairs of a decision."""
    rows = db.execute(
        "SELECT flag_id FROM verdicts v JOIN flags f ON f.a = v.a AND f.b = v.b WHERE decision = ? ORDER BY flag_id",
        (decision,),
    )
    return [row[0] for row in rows]


def list_languages(db: sqlite3.Connection, decision: int) -> set[Language]:
    """The languages of the pairs of a decision."""
    rows = db.execute(
        "SELECT DISTINCT name FROM verdicts JOIN languages ON number = language WHERE decision = ?", (decision,)
    )
    return {Language(name) for (name,) in rows}


def list_of_decision(db: sqlite3.Connection, decision: int) -> list[Row]:
    """The verdicts of a decision, the most severe pair first.

    Columns: a, b, verdict, note, moderator, decided_at, undone_at, undone_by, case_id.
    """
    return select_named_rows(
        db,
        "SELECT a, b, verdict, note, moderator, decided_at, undone_at, undone_by, case_id FROM verdicts"
        " WHERE decision = ? ORDER BY verdict_id",
        (decision,),
    ).fetchall()


def find_built_upon(db: sqlite3.Connection, decision: int) -> Row | None:
    """The latest verdict that stands on a pair of a decision that stands and was given after it; None without one.

    Columns: a, b, verdict, moderator, decided_at.
    """
    found: Row | None = select_named_rows(
        db,
        "SELECT w.a, w.b, w.verdict, w.moderator, w.decided_at FROM verdicts v CROSS JOIN verdicts w"
        " ON w.a = v.a AND w.b = v.b AND w.verdict_id > v.verdict_id AND w.undone_at IS NULL"
        " WHERE v.decision = ? AND v.undone_at IS NULL ORDER BY w.verdict_id DESC LIMIT 1",
        (decision,),
    ).fetchone()
    return found


def list_decisions(db: sqlite3.Connection, moderator: str, limit: int) -> list[int]:
    """The numbers of a moderator's latest decisions, the latest first."""
    rows = db.execute(
        "SELECT DISTINCT decision FROM verdicts WHERE moderator = ? ORDER BY decision DESC LIMIT ?", (moderator, limit)
    )
    return [row[0] for row in rows]


def list_of_case(db: sqlite3.Connection, case_id: int) -> list[Row]:
    """The decisions on the flags of a case, newest first.

    Columns: decision, verdict, note, moderator, decided_at, undone_at, undone_by, pairs (their number).
    """
    return select_named_rows(
        db,
        "SELECT decision, verdict, note, moderator, decided_at, undone_at, undone_by, count(*) AS pairs FROM flags f"
        " CROSS JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE f.case_id = ?"
        " GROUP BY decision ORDER BY decision DESC",
        (case_id,),
    ).fetchall()


def list_of_pair(db: sqlite3.Connection, a: int, b: int) -> list[Row]:
    """The verdicts on two stories, in either order, newest first.

    Columns: verdict_id, decision, kind, verdict, note, moderator, decided_at, undone_at, undone_by.
    """
    return select_named_rows(
        db,
        "SELECT verdict_id, decision, kind, verdict, note, moderator, decided_at, undone_at, undone_by FROM verdicts"
        " WHERE a = ? AND b = ? ORDER BY verdict_id DESC",
        (min(a, b), max(a, b)),
    ).fetchall()


def count_verdicts(db: sqlite3.Connection) -> list[Row]:
    """The active verdicts, counted by language and kind.

    Columns: language, kind, judged (their number), and one for each verdict.
    """
    each = ", ".join(f"sum(n * (verdict = '{verdict}')) AS {verdict}" for verdict in DECIDING)
    return select_named_rows(
        db,
        f"SELECT name AS language, kind, sum(n) AS judged, {each} FROM"
        " (SELECT language, kind, verdict, severity, count(*) AS n FROM active_verdicts GROUP BY 1, 2, 3, 4)"
        " JOIN languages ON number = language GROUP BY name, kind ORDER BY name, min(severity)",
    ).fetchall()


# The log: what moderators decided and undid, in the order of time.


def list_events_since(db: sqlite3.Connection, time: int | None = None) -> Iterator[Event]:
    """The events at or after a time (ms), one for each verdict and each undo.

    A verdict given on several pairs at once is one event.  Members: event ("verdict" or "undo"), at (RFC 3339), by,
    decision, verdict, note, cases (the ids of the cases that the pairs were in), and pairs, each with a, b, kind,
    language and catalogue (that of the work a, None for a story).  `authors.list_hiding_events` are among them.
    """
    since = LONG_AGO if time is None else time
    return merge(
        _list_events(db, ANY, since),
        authors.list_hiding_events(db, since),
        key=lambda event: parse_milliseconds(event["at"]) or 0,
    )


def list_events_on_story(db: sqlite3.Connection, story_id: int) -> list[Event]:
    """The events on the pairs of which this is the later story, also on those that a verdict says are no copies."""
    return list(_list_events(db, ON_A_LATER_STORY, LONG_AGO, story_id))


def list_events_of_decision(db: sqlite3.Connection, decision: int) -> list[Event]:
    """The verdict of a decision, and its undo if there was one."""
    return list(_list_events(db, "decision = ?2", LONG_AGO, decision))


def announce(db: sqlite3.Connection, decision: int, name: str) -> None:
    """Have the verdict of a decision or its undo posted, within the caller's transaction, if there is a webhook."""
    if webhook_events.is_wanted(db, webhook_events.VERDICTS):
        for event in list_events_of_decision(db, decision):
            if event["event"] == name:
                webhook_events.announce(db, webhook_events.VERDICTS, event)


def _list_events(db: sqlite3.Connection, where: str, *values: object) -> Iterator[Event]:
    given = EVENTS.format(event="'verdict'", at="decided_at", by="moderator", where=where)
    undone = EVENTS.format(event="'undo'", at="undone_at", by="undone_by", where=where)
    rows = select_named_rows(db, f"{given} UNION ALL {undone} ORDER BY at, decision, event DESC, verdict_id", values)
    for _, group in groupby(
        story_rows.show_ids(db, rows, ("a", "b", "case_id")), lambda row: (row["decision"], row["event"], row["at"])
    ):
        members = list(group)
        shared = {name: members[0][name] for name in ("event", "by", "decision", "verdict", "note")}
        pairs = [{name: row[name] for name in ("a", "b", "kind", "language", "catalogue")} for row in members]
        cases = sorted({row["case_id"] for row in members if row["case_id"] is not None}, key=str)
        yield {"at": format_time(members[0]["at"]), **shared, "cases": cases, "pairs": pairs}


# Second reviews.


def list_cases_to_review(
    db: sqlite3.Connection, share: float, moderator: str, spoken: Collection[Language] = ()
) -> list[int]:
    """The cases that wait for a second review by a moderator, of this share of the decided ones.

    Without `spoken`, they are of every language.
    """
    number_of = languages.map_numbers(db)
    where, values = join_conditions(
        [
            ("open_flags = 0 AND NOT hidden", []),
            (f"statuses {AMONG}", [dump_list(f",{verdict}," for verdict in DECIDING)]),
            (f"{HASH} < ?", [round(share * HASHES)]),
            ("case_id NOT IN (SELECT case_id FROM second_reviews)", []),
            (f"NOT EXISTS (SELECT 1 {ON_THE_CASE} AND v.moderator = ?)", [moderator]),
            *([(f"language {AMONG}", [dump_list(number_of.get(name) for name in spoken)])] if spoken else []),
        ]
    )
    rows = db.execute(f"SELECT case_id FROM cases WHERE {where} ORDER BY {HASH}, case_id", values)
    return [row[0] for row in rows]


def record_review(  # noqa: PLR0917 - the fields of a form, in their order
    db: sqlite3.Connection, case_id: int, verdict: Verdict, note: str, moderator: str, seen: str
) -> int | None:
    """Record a second review; returns the number of the decision by which the case is open again, None if both agree.

    `seen` is the `identify_state` of its flags as they were shown.  Raises Conflict where it has changed, and
    where the case has been reviewed meanwhile.
    """
    with transaction(db):
        flag_ids = cases.list_flags(db, case_id)
        refuse_if_changed(db, flag_ids, seen)
        row = db.execute(
            "SELECT v.verdict, v.moderator FROM flags f CROSS JOIN active_verdicts v ON v.a = f.a AND v.b = f.b"
            " WHERE f.case_id = ? ORDER BY v.verdict_id DESC LIMIT 1",
            (case_id,),
        ).fetchone()
        if row is None or read_review(db, case_id) is not None:
            raise Conflict("this case does not wait for a second review any more")
        first, first_moderator = row
        db.execute(
            "INSERT INTO second_reviews VALUES (?, ?, ?, ?, ?, ?, ?)",
            (case_id, first, first_moderator, verdict, moderator, note, now_ms()),
        )
        return None if verdict == first else give(db, flag_ids, Verdict.REOPENED, note, moderator)


def read_review(db: sqlite3.Connection, case_id: int) -> Row | None:
    """The second review of a case; None without one.

    Columns: first, first_moderator, second, second_moderator, note, reviewed_at.
    """
    found: Row | None = select_named_rows(
        db,
        "SELECT first, first_moderator, second, second_moderator, note, reviewed_at FROM second_reviews"
        " WHERE case_id = ?",
        (case_id,),
    ).fetchone()
    return found


def count_judged_twice(db: sqlite3.Connection) -> Counter[tuple[Verdict, Verdict]]:
    """How many cases were judged twice, by the first verdict and the second."""
    rows = db.execute("SELECT first, second, count(*) FROM second_reviews GROUP BY 1, 2")
    return Counter({(Verdict(first), Verdict(second)): n for first, second, n in rows})


def compute_kappa(counts: Mapping[tuple[Verdict, Verdict], int]) -> float | None:
    """Cohen's kappa of two moderators, how far they agree beyond chance: (p_o - p_e) / (1 - p_e).

    p_o is the share of the cases on which they agree, p_e the share on which they would by chance, each with the
    frequencies of the own verdicts.  None without cases, and where both always give one and the same verdict.  Source:
    J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960).
    """
    n = sum(counts.values())
    firsts, seconds = Counter[Verdict](), Counter[Verdict]()
    for (first, second), cases_judged in counts.items():
        firsts[first] += cases_judged
        seconds[second] += cases_judged
    by_chance = sum(firsts[verdict] * seconds[verdict] for verdict in firsts)  # p_e, times n squared
    if by_chance == n * n:
        return None
    agreeing = sum(counts.get((verdict, verdict), 0) for verdict in firsts)
    return (agreeing * n - by_chance) / (n * n - by_chance)
