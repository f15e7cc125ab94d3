"""Verdicts on flags of a ledger, and copies to give them on."""

import sqlite3
from collections.abc import Iterable

from neardup.ledger import candidates, transaction, verdicts
from neardup.records import Verdict

from tests.support.builders import commit, judge_pending, made


def judge(db: sqlite3.Connection, pairs: Iterable[tuple[int, int]], verdict: Verdict) -> int:
    judged = set(pairs)
    ids = [flag_id for flag_id, *pair in db.execute("SELECT flag_id, a, b FROM flags") if tuple(pair) in judged]
    assert ids, "the test judges what is flagged"
    return verdicts.decide(db, ids, verdict, "", "Asha", verdicts.state(db, ids))


def undo(db: sqlite3.Connection, decision: int) -> None:
    verdicts.undo(db, decision, "Asha", verdicts.state(db, verdicts.flags_of(db, decision)))


def copies(db: sqlite3.Connection, *ids: int, most: int = 50) -> int:
    """Stories of one text, each nominated with all that are there, the lowest first; how many were left out."""
    full = 0
    for story_id in ids:
        there = [row[0] for row in db.execute("SELECT id FROM stories ORDER BY id")]
        commit(db, made(story_id, 1))
        full += nominate(db, story_id, [n for n in there if n != story_id], most)
        judge_pending(db)
    return full


def nominate(db: sqlite3.Connection, story_id: int, ids: list[int], most: int = 50) -> int:
    with transaction(db):
        return candidates.nominate(db, candidates.Matches(story_id, ids, most))
