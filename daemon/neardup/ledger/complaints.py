"""Complaints: somebody says that a story copies from an original, and each complaint has a deadline and a log.

A complaint names the story, and the original by its id or its text, or no original: then the story was compared with
all.  It is recorded before evidence is made, so that none is lost where a text cannot be read.

The flags of the story are its case.  A verdict closes the complaint, with the verdict as its outcome, as soon as it
decides what the complaint is about: the pair with the original on record, or else, where no original is named, the last
open pair of the story.  Once no verdict decides that any more, the complaint is open again; one that returns because a
later one is undone decides it as before.  What no flag shows, a moderator closes.

The log has every step and only grows.  A complainant who is forgotten leaves a complaint without name, contact,
statement, answers, and the original's text, if the complainant gave it, with its quotes; of a story that is removed,
the numbers of the evidence stay, without title and name, and the complaint is closed.
"""

import json
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct

from neardup.errors import Conflict
from neardup.ledger import (
    AMONG,
    dump_list,
    now_ms,
    select_named_rows,
    story_rows,
    transaction,
    webhook_events,
)
from neardup.records import ShownId, format_time

DAY_MS = 86_400_000
UPHELD, DISMISSED, STORY_REMOVED = "upheld", "dismissed", "story_removed"
BY_HAND = (UPHELD, DISMISSED)  # the outcomes that a moderator chooses
OPEN, CLOSED = "closed_at IS NULL", "closed_at IS NOT NULL"
COLUMNS = (
    "complaint_id AS number, story_id, original_id, original_text IS NOT NULL AS has_text, complainant, contact,"
    " statement, evidence, received_at, due_at, closed_at, outcome"
)


class Step(StrEnum):
    """What happened to a complaint."""

    RECEIVED = "received"
    ACKNOWLEDGED = "acknowledged"  # the complainant knows its number and its deadline
    EVIDENCE_MADE = "evidence_made"
    EVIDENCE_FAILED = "evidence_failed"
    AUTHOR_ASKED = "author_asked"
    AUTHOR_ANSWERED = "author_answered"
    COMPLAINANT_ANSWERED = "complainant_answered"
    DECIDED = "decided"  # its flags, by a verdict
    CLOSED = "closed"
    REOPENED = "reopened"
    FORGOTTEN = "complainant_forgotten"


ANSWERS = {"author": Step.AUTHOR_ANSWERED, "complainant": Step.COMPLAINANT_ANSWERED}
NOTICES = (Step.ACKNOWLEDGED, Step.AUTHOR_ASKED)  # which a moderator records once they were sent
OF_COMPLAINANT = (Step.RECEIVED, Step.COMPLAINANT_ANSWERED)


class NewComplaint(NamedTuple):
    """A complaint as it arrives; `text_hash` is the hash of what is compared of the original's text."""

    story_id: int
    original_id: int | None
    original_text: str | None
    text_hash: bytes | None
    complainant: str
    contact: str
    statement: str


class LoggedStep(NamedTuple):
    """A step of a complaint; `by` is the moderator, None for a program, and `at` in milliseconds."""

    step: Step
    at: int
    by: str | None
    note: str


class Complaint(Struct, frozen=True):
    """A complaint with its log.  Times are in milliseconds; the name and the contact are None once forgotten.

    `title`, `language` and `author_id` are those of the story, None if it is not on record any more.
    """

    number: int
    story_id: int
    shown: ShownId
    title: str | None
    language: str | None
    author_id: str | None
    original_id: int | None
    original_shown: ShownId | None
    original_title: str | None
    has_text: bool
    complainant: str | None
    contact: str | None
    statement: str
    evidence: dict[str, Any] | None
    received_at: int
    due_at: int
    closed_at: int | None
    outcome: str | None
    log: tuple[LoggedStep, ...]

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def steps(self) -> set[Step]:
        return {logged.step for logged in self.log}


class Duplicate(Conflict):
    """The same complainant complained of the same pair before."""

    def __init__(self, number: int) -> None:
        super().__init__(f"this is complaint {number} again: the same complainant, story and original")
        self.number = number


class Closed(Conflict):
    """The complaint is closed."""


class OpenComplaints(NamedTuple):
    """How many complaints are open, and of these overdue, and acknowledged by no one though they came some time ago.

    The times (ms) are those of the oldest and of the next deadline.
    """

    open: int
    overdue: int
    unacknowledged: int
    oldest: int | None
    next_due: int | None


def put(db: sqlite3.Connection, given: NewComplaint, days: int, by: str | None, *, acknowledged: bool) -> int:
    """Record a complaint, whose deadline is so many days ahead; returns its number.

    `acknowledged` says that the complainant gets the number with the answer.  Raises Duplicate.
    """
    with transaction(db):
        before = db.execute(
            "SELECT complaint_id FROM complaints WHERE story_id = ?1 AND original_id IS ?2 AND original_hash IS ?3"
            " AND contact = ?4 COLLATE NOCASE",
            (given.story_id, given.original_id, given.text_hash, given.contact),
        ).fetchone()
        if before is not None:
            raise Duplicate(before[0])
        now = now_ms()
        text = given.original_text
        number = db.execute(
            "INSERT INTO complaints (story_id, original_id, original_text, original_hash, complainant, contact,"
            " statement, received_at, due_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                given.story_id,
                given.original_id,
                None if text is None else zlib.compress(text.encode("utf-8", "replace")),
                given.text_hash,
                given.complainant,
                given.contact,
                given.statement,
                now,
                now + days * DAY_MS,
            ),
        ).lastrowid
        assert number is not None
        _log(db, number, Step.RECEIVED, by)
        if acknowledged:
            _log(db, number, Step.ACKNOWLEDGED, by)
    return number


def read_original_text(db: sqlite3.Connection, number: int) -> str | None:
    """The text of the original of a complaint that gave it; None once it is forgotten."""
    row = db.execute("SELECT original_text FROM complaints WHERE complaint_id = ?", (number,)).fetchone()
    return None if row is None or not row[0] else zlib.decompress(row[0]).decode()


def put_evidence(db: sqlite3.Connection, number: int, evidence: dict[str, Any] | None, note: str = "") -> None:
    """Record the evidence of a complaint, or without it, in the note, why it cannot be made.

    Neither is kept if a text of the complaint was removed or forgotten meanwhile: both may name or quote it.
    """
    with transaction(db):
        if (gone := _describe_gone(db, number)) is not None:
            evidence, note = None, gone
        if evidence is None:
            _log(db, number, Step.EVIDENCE_FAILED, None, note)
            return
        _set_evidence(db, number, evidence)
        _log(db, number, Step.EVIDENCE_MADE, None)


def _describe_gone(db: sqlite3.Connection, number: int) -> str | None:
    """Which text of a complaint is not on record any more, in words; None if none is missing."""
    story_id, original_id, is_forgotten = db.execute(
        "SELECT story_id, original_id, original_text = x'' FROM complaints WHERE complaint_id = ?", (number,)
    ).fetchone()
    if is_forgotten:
        return "the text of the original was forgotten with the complainant"
    named = [story_id] if original_id is None else [story_id, original_id]
    held = {row[0] for row in db.execute(f"SELECT id FROM stories WHERE id {AMONG}", (dump_list(named),))}
    return next((f"story {lost} is not on record any more" for lost in named if lost not in held), None)


# What is said of a complaint, and how it ends.


def log_notice(db: sqlite3.Connection, number: int, step: Step, by: str | None, note: str) -> None:
    """Record that a notice was sent.  Raises Closed."""
    with transaction(db):
        _refuse_closed(db, number)
        _log(db, number, step, by, note)


def log_answer(db: sqlite3.Connection, number: int, side: str, by: str | None, text: str) -> None:
    """Record what the author or the complainant answered; the same words as before change nothing.  Raises Closed."""
    step = ANSWERS[side]
    with transaction(db):
        _refuse_closed(db, number)
        last = db.execute(
            "SELECT note FROM complaint_steps WHERE complaint_id = ? AND step = ? ORDER BY step_id DESC LIMIT 1",
            (number, step),
        ).fetchone()
        if last != (text,):
            _log(db, number, step, by, text)


def close(db: sqlite3.Connection, number: int, outcome: str, by: str, note: str) -> None:
    """Close a complaint by hand, with one of BY_HAND.  Raises Closed."""
    with transaction(db):
        _refuse_closed(db, number)
        _close(db, number, outcome, by, note)


def reopen(db: sqlite3.Connection, number: int, by: str, note: str) -> None:
    """Open a closed complaint again, with the deadline that it had; does nothing to one that is open."""
    with transaction(db):
        if db.execute(f"SELECT 1 FROM complaints WHERE complaint_id = ? AND {CLOSED}", (number,)).fetchone():
            _reopen(db, number, by, note)


def follow_verdicts(db: sqlite3.Connection, pairs: Collection[tuple[int, int]], by: str) -> None:
    """Close and open complaints as the verdicts on record say, once those on these pairs have changed.

    Runs within the caller's transaction.  What a moderator closed by hand stays closed.
    """
    rows = db.execute(
        "SELECT DISTINCT complaint_id, story_id, original_id, closed_at, decision FROM json_each(?)"
        " CROSS JOIN complaints ON story_id IN (value ->> 0, value ->> 1) WHERE original_text IS NULL"
        " AND (closed_at IS NULL OR decision IS NOT NULL)",
        (dump_list(pairs),),
    ).fetchall()
    changed = set(pairs)
    for number, story_id, original_id, closed_at, decision in rows:
        if original_id is not None and _order(story_id, original_id) not in changed:
            continue
        ruling = _read_ruling(db, story_id, original_id)
        if ruling is None:
            if closed_at is not None:
                _reopen(db, number, by, "")
        elif ruling.decision != decision:
            _log(db, number, Step.DECIDED, ruling.moderator, ruling.verdict)
            _close(db, number, ruling.verdict, by, "", ruling.decision)


class _Ruling(NamedTuple):
    """The verdict that decides what a complaint is about."""

    decision: int
    verdict: str
    moderator: str


def _read_ruling(db: sqlite3.Connection, story_id: int, original_id: int | None) -> _Ruling | None:
    """The verdict on a pair; or without an original the last one on a story, once none of its pairs is open."""
    if original_id is not None:
        where, values = "a = ? AND b = ?", _order(story_id, original_id)
    elif db.execute(
        "SELECT 1 FROM flags WHERE (a = ?1 OR b = ?1) AND +status = 'open' AND NOT same_author LIMIT 1", (story_id,)
    ).fetchone():
        return None
    else:
        where, values = "a = ? OR b = ?", (story_id, story_id)
    latest = "ORDER BY verdict_id DESC LIMIT 1"
    row = db.execute(f"SELECT decision, verdict, moderator FROM active_verdicts WHERE {where} {latest}", values)
    return next((_Ruling(*found) for found in row), None)


def _order(story_id: int, other: int) -> tuple[int, int]:
    return min(story_id, other), max(story_id, other)


def forget_complainant(db: sqlite3.Connection, number: int, by: str | None) -> bool:
    """Erase the name, the contact and the words of a complainant, also the text of an original and what quotes it.

    Returns whether there is such a complaint.  That a text was given stays known: its blob is empty.
    """
    with transaction(db):
        changed = db.execute(
            "UPDATE complaints SET complainant = NULL, contact = NULL, statement = '', original_hash = NULL,"
            " original_text = iif(original_text IS NULL, NULL, x''), evidence = iif(original_text IS NULL, evidence,"
            " json_set(evidence, '$.passages', json_array())) WHERE complaint_id = ?",
            (number,),
        )
        if not changed.rowcount:
            return False
        db.execute(
            f"UPDATE complaint_steps SET note = '' WHERE complaint_id = ? AND note <> '' AND step {AMONG}",
            (number, dump_list(OF_COMPLAINANT)),
        )
        _log(db, number, Step.FORGOTTEN, by)
    return True


def forget_story(db: sqlite3.Connection, story_id: int, shown: ShownId) -> None:
    """Erase what evidence quotes of a removed story, its title, name and path, and close the complaints about it.

    Runs within the caller's transaction.  `shown` is how the id was shown while the story was on record.
    """
    rows = db.execute(
        "SELECT complaint_id, evidence, story_id = ?1 OR original_id IS ?1 FROM complaints WHERE evidence IS NOT NULL"
        " AND (story_id = ?1 OR original_id = ?1 OR EXISTS (SELECT 1 FROM json_tree(evidence)"
        " WHERE key = 'story_id' AND atom = ?2))",
        (story_id, shown),
    ).fetchall()
    for number, stored, is_quoted in rows:
        evidence = json.loads(stored)
        for found in (*evidence["matches"], evidence["near_miss"]):
            if found and found["story_id"] == shown:
                found |= {"story_id": story_id, "title": None}
        if is_quoted:
            evidence["passages"] = []
        _set_evidence(db, number, evidence)
    db.execute(
        "UPDATE complaint_steps SET note = '' WHERE step = ? AND note <> '' AND complaint_id IN"
        " (SELECT complaint_id FROM complaints WHERE story_id = ? OR original_id = ?)",
        (Step.EVIDENCE_FAILED, story_id, story_id),
    )
    about = f"SELECT complaint_id FROM complaints WHERE story_id = ? AND {OPEN}"
    for (number,) in db.execute(about, (story_id,)).fetchall():
        _close(db, number, STORY_REMOVED, None, "")


def _set_evidence(db: sqlite3.Connection, number: int, evidence: dict[str, Any]) -> None:
    value = json.dumps(evidence, ensure_ascii=False)
    db.execute("UPDATE complaints SET evidence = ? WHERE complaint_id = ?", (value, number))


def _refuse_closed(db: sqlite3.Connection, number: int) -> None:
    row = db.execute("SELECT outcome FROM complaints WHERE complaint_id = ?", (number,)).fetchone()
    if row is not None and row[0] is not None:
        raise Closed(f"complaint {number} is closed: {row[0].replace('_', ' ')}")


def _reopen(db: sqlite3.Connection, number: int, by: str, note: str) -> None:
    db.execute(
        "UPDATE complaints SET closed_at = NULL, outcome = NULL, decision = NULL WHERE complaint_id = ?", (number,)
    )
    _log(db, number, Step.REOPENED, by, note)


def _close(  # noqa: PLR0917 - the columns, in their order
    db: sqlite3.Connection, number: int, outcome: str, by: str | None, note: str, decision: int | None = None
) -> None:
    db.execute(
        "UPDATE complaints SET closed_at = ?, outcome = ?, decision = ? WHERE complaint_id = ?",
        (now_ms(), outcome, decision, number),
    )
    _log(db, number, Step.CLOSED, by, note)


def _log(db: sqlite3.Connection, number: int, step: Step, by: str | None, note: str = "") -> None:
    """Add a step to the log, and have it posted if verdicts have a webhook; nothing that a person wrote is posted."""
    now = now_ms()
    db.execute(
        "INSERT INTO complaint_steps (complaint_id, step, at, moderator, note) VALUES (?, ?, ?, ?, ?)",
        (number, step, now, by, note),
    )
    if not webhook_events.is_wanted(db, webhook_events.VERDICTS):
        return
    story_id, original_id, due_at, outcome = db.execute(
        "SELECT story_id, original_id, due_at, outcome FROM complaints WHERE complaint_id = ?", (number,)
    ).fetchone()
    shown = story_rows.read_shown_ids(db, {story_id, original_id} - {None})
    event = {
        "event": "complaint",
        "at": format_time(now),
        "complaint": number,
        "step": step,
        "story_id": shown[story_id],
        "original_id": shown.get(original_id),
        "due_at": format_time(due_at),
        "outcome": outcome,
    }
    webhook_events.announce(db, webhook_events.VERDICTS, event)


# What is on record.


def read_complaint(db: sqlite3.Connection, number: int) -> Complaint | None:
    """A complaint by its number."""
    return next(iter(_read(db, "complaint_id = ?", number)), None)


def list_complaints(
    db: sqlite3.Connection, *, closed: bool = False, limit: int = -1, offset: int = 0
) -> list[Complaint]:
    """The open complaints, the next deadline first; or those that are closed, the last one first."""
    if closed:
        return _read(db, f"{CLOSED} ORDER BY closed_at DESC, complaint_id DESC LIMIT ? OFFSET ?", limit, offset)
    return _read(db, f"{OPEN} ORDER BY due_at, complaint_id LIMIT ? OFFSET ?", limit, offset)


def list_of_stories(db: sqlite3.Connection, story_ids: Iterable[int]) -> list[Complaint]:
    """The complaints about these stories, the latest first."""
    return _read(db, f"story_id {AMONG} ORDER BY complaint_id DESC", dump_list(story_ids))


def list_open_of_case(db: sqlite3.Connection, case_id: int) -> list[Complaint]:
    """The open complaints about the stories of a case, the next deadline first."""
    # The unary + keeps SQLite from reading all flags of a large case for each of the few complaints.
    in_case = " OR ".join(
        f"EXISTS (SELECT 1 FROM flags f WHERE f.{side} = story_id AND +f.case_id = ?1)" for side in "ab"
    )
    return _read(db, f"{OPEN} AND ({in_case}) ORDER BY due_at, complaint_id", case_id)


def count(db: sqlite3.Connection, *, closed: bool = False) -> int:
    """The number of open complaints, or of closed ones."""
    return int(db.execute(f"SELECT count(*) FROM complaints WHERE {CLOSED if closed else OPEN}").fetchone()[0])


def count_open(db: sqlite3.Connection, now: int, received_before: int) -> OpenComplaints:
    """What the gauges say at a time; a complaint is to be acknowledged if it was `received_before`."""
    row = db.execute(
        "SELECT count(*), count(*) FILTER (WHERE due_at < ?), count(*) FILTER (WHERE received_at <= ? AND NOT EXISTS"
        " (SELECT 1 FROM complaint_steps s WHERE s.complaint_id = c.complaint_id AND step = ?)),"
        f" min(received_at), min(due_at) FROM complaints c WHERE {OPEN}",
        (now, received_before, Step.ACKNOWLEDGED),
    )
    return OpenComplaints(*row.fetchone())


def _read(db: sqlite3.Connection, where: str, *values: object) -> list[Complaint]:
    rows = select_named_rows(db, f"SELECT {COLUMNS} FROM complaints WHERE {where}", values).fetchall()
    ids = {row[side] for row in rows for side in ("story_id", "original_id")} - {None}
    shown = story_rows.read_shown_ids(db, ids)
    described = f"SELECT id, title, language, author_id FROM described WHERE id {AMONG}"
    known = {row["id"]: row for row in select_named_rows(db, described, (dump_list(ids),))}
    logs = _read_logs(db, [row["number"] for row in rows])
    found = []
    for row in rows:
        story, original = known.get(row["story_id"], {}), known.get(row["original_id"], {})
        row |= {"has_text": bool(row["has_text"]), "evidence": row["evidence"] and json.loads(row["evidence"])}
        row |= {"shown": shown[row["story_id"]], "original_shown": shown.get(row["original_id"])}
        row |= {name: story.get(name) for name in ("title", "language", "author_id")}
        log = tuple(logs.get(row["number"], ()))
        found.append(Complaint(**row, original_title=original.get("title"), log=log))
    return found


def _read_logs(db: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, list[LoggedStep]]:
    logs: dict[int, list[LoggedStep]] = {}
    for number, step, at, by, note in db.execute(
        "SELECT complaint_id, step, at, moderator, note FROM complaint_steps"
        f" WHERE complaint_id {AMONG} ORDER BY step_id",
        (dump_list(numbers),),
    ):
        logs.setdefault(number, []).append(LoggedStep(Step(step), at, by, note))
    return logs
