"""Gives and undoes verdicts on the flags of a ledger, adds copies to give them on, and records complaints."""

import sqlite3
from collections.abc import Iterable
from typing import Any

from neardup.core.verify.tiers import PARTIAL
from neardup.ledger import candidates, cases, complaints, transaction, verdicts
from neardup.ledger.complaints import NewComplaint
from neardup.records import Verdict

from tests.support.builders import commit, fingerprinted, verify_pending


def give_verdict(db: sqlite3.Connection, pairs: Iterable[tuple[int, int]], verdict: Verdict) -> int:
    chosen = set(pairs)
    ids = [flag_id for flag_id, *pair in db.execute("SELECT flag_id, a, b FROM flags") if tuple(pair) in chosen]
    assert ids, "none of the pairs is flagged"
    return verdicts.decide(db, ids, verdict, "", "Asha", verdicts.identify_state(db, ids))


def decide_case(db: sqlite3.Connection, story_id: int, verdict: Verdict, note: str = "") -> int:
    """Give all flags of the case of a story a verdict."""
    cases.refresh(db)
    case_id = cases.find_case(db, story_id)
    assert case_id is not None, "the story is in no case"
    ids = cases.list_flags(db, case_id)
    return verdicts.decide(db, ids, verdict, note, "Asha", verdicts.identify_state(db, ids))


def undo(db: sqlite3.Connection, decision: int) -> None:
    verdicts.undo(db, decision, "Asha", verdicts.identify_state(db, verdicts.list_flags(db, decision)))


def add_copies(db: sqlite3.Connection, *ids: int) -> int:
    """Add copies, each nominated with all earlier ones, the lowest id first; returns how many are left out."""
    left_out = 0
    for story_id in ids:
        present = [row[0] for row in db.execute("SELECT id FROM stories ORDER BY id")]
        commit(db, fingerprinted(story_id, 1))
        left_out += nominate(db, story_id, [n for n in present if n != story_id])
        verify_pending(db)
    return left_out


def nominate(db: sqlite3.Connection, story_id: int, ids: list[int], most: int = 50) -> int:
    with transaction(db):
        return candidates.nominate(db, candidates.Matches(story_id, ids, most))


PERSON, CONTACT, STATEMENT = "Meera Iyer", "meera@example.com", "यह मेरी कहानी है।"
EVIDENCE: dict[str, Any] = {
    "made_at": "2026-11-28T02:00:00Z",
    "compared_with": "story",
    "compared": 1,
    "thresholds": {"hamming": 3, "jaccard": 0.5, "containment": 0.5, "passage_words": 75, "rare_share": 0.35},
    "kind": PARTIAL,
    "similarity": 0.6,
    "matches": [
        {
            "story_id": 7,
            "title": "मूल",
            "kind": PARTIAL,
            "similarity": 0.6,
            "hamming": 40,
            "jaccard": 0.3,
            "containment": 0.6,
            "longest_run_words": 40,
            "copied_words": 60,
        }
    ],
    "near_miss": None,
    "passages": [{"words": 40, "original": "शब्द " * 40, "story": "शब्द " * 40}],
    "estimated": False,
    "reasons": [],
}


def put_complaint(
    db: sqlite3.Connection, story_id: int, original_id: int | None, days: int = 7, *, acknowledged: bool = True
) -> int:
    """Record a complaint with its evidence; returns its number."""
    given = NewComplaint(story_id, original_id, None, None, PERSON, CONTACT, STATEMENT)
    number = complaints.put(db, given, days, "Ravi", acknowledged=acknowledged)
    complaints.put_evidence(db, number, EVIDENCE)
    return number
