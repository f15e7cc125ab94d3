"""Records complaints in a ledger, with evidence as a comparison makes it."""

import sqlite3
from typing import Any

from neardup.core.verify.tiers import PARTIAL
from neardup.ledger import complaints
from neardup.ledger.complaints import NewComplaint

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
