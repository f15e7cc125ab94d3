"""Cases and decisions as JSON objects, for the API of the desk."""

import json
import sqlite3
from dataclasses import asdict
from typing import Any

from neardup.ledger import case_queue, cases, flags, verdicts
from neardup.ledger.case_queue import Counts
from neardup.ledger.cases import Lease
from neardup.ledger.marks import of_stories
from neardup.moderation.desk import deciding
from neardup.moderation.desk.case_query import CaseQueue
from neardup.moderation.desk.decision import decision
from neardup.records import Marks, rfc3339

SHOWN_PAIRS = 1_000
PAIR_FIELDS = (
    "flag_id",
    "kind",
    "status",
    "story_id",
    "story_name",
    "story_title",
    "story_author_id",
    "matched_id",
    "matched_name",
    "matched_title",
    "matched_author_id",
    "copied_words",
)
Json = dict[str, Any]


def queue_object(db: sqlite3.Connection, queue: CaseQueue, first: int, limit: int) -> Json:
    """A part of a queue of cases, from position `first`, with how many cases there are."""
    rows = case_queue.select(db, queue.selection, queue.order, limit=limit, offset=first)
    held = cases.leases_held(db, [row["case_id"] for row in rows])
    marks = of_stories(db, [row["lead"] for row in rows])
    return {
        "counts": _counts(case_queue.counts(db, queue.selection)),
        "cases": [_case(row, held.get(row["case_id"]), marks.get(row["lead"], ())) for row in rows],
    }


def case_object(db: sqlite3.Connection, case_id: int) -> Json | None:
    """A case with the first of its pairs, the open ones first, and the decisions on it, the newest first."""
    row = case_queue.read_case(db, case_id)
    if row is None:
        return None
    is_open, decided = deciding.open_and_decided(db, case_id)
    pairs = flags.list_pairs(db, [*is_open, *decided][:SHOWN_PAIRS])
    marks = of_stories(db, [row["lead"]]).get(row["lead"], ())
    return _case(row, cases.leases_held(db, [case_id]).get(case_id), marks) | {
        "seen": verdicts.state(db, is_open),
        "decided_seen": verdicts.state(db, decided),
        "evidence": [{name: pair[name] for name in PAIR_FIELDS} for pair in pairs],
        "decisions": [_given(given) for given in verdicts.of_case(db, case_id)],
    }


def decision_object(db: sqlite3.Connection, number: int) -> Json | None:
    """A decision with the pairs that it is about; `seen` is what undoing it asks for."""
    found = decision(db, number)
    if found is None:
        return None
    return {
        "decision": number,
        "verdict": found.verdict,
        "moderator": found.moderator,
        "is_undone": found.is_undone,
        "cases": sorted(found.cases),
        "pairs": [list(pair) for pair in found.pairs],
        "seen": found.seen,
    }


def lease_object(lease: Lease) -> Json:
    """Who holds a case, and until when."""
    return {"moderator": lease.moderator, "until": rfc3339(lease.until)}


def _case(row: sqlite3.Row, lease: Lease | None, marks: Marks) -> Json:
    return {
        "case_id": row["case_id"],
        "language": row["language"],
        "lead": {
            "story_id": row["lead"],
            "name": row["name"],
            "title": row["title"],
            "author_id": row["author"],
            "published_at": None if row["published_at"] is None else rfc3339(row["published_at"]),
            "words": row["words"],
            "marks": list(map(asdict, marks)),
        },
        "similarity": row["similarity"],
        "score": row["score"],
        "kinds": row["kinds"].strip(",").split(","),
        "statuses": row["statuses"].strip(",").split(","),
        "catalogues": [name for name in row["catalogues"].split(",") if name],
        "pairs": row["flags"],
        "open_pairs": row["open_flags"],
        "stories": row["stories"],
        "same_author": bool(row["same_author"]),
        "order_known": bool(row["is_ordered"]),
        "author_cases_of_plagiarism": row["history"],
        "flagged_at": rfc3339(row["flagged_at"]),
        "second_opinion_asked_by": json.loads(row["unsure"]),
        "lease": lease and lease_object(lease),
    }


def _given(row: sqlite3.Row) -> Json:
    return {
        "decision": row["decision"],
        "verdict": row["verdict"],
        "note": row["note"],
        "moderator": row["moderator"],
        "decided_at": rfc3339(row["decided_at"]),
        "undone_at": None if row["undone_at"] is None else rfc3339(row["undone_at"]),
        "undone_by": row["undone_by"],
        "pairs": row["pairs"],
    }


def _counts(counts: Counts) -> Json:
    return {
        "total": counts.total,
        "hidden": counts.hidden,
        "languages": dict(counts.languages),
        "kinds": dict(counts.kinds),
        "statuses": dict(counts.statuses),
        "authors": dict(counts.authors),
        "catalogues": dict(counts.catalogues),
    }
