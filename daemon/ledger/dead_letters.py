"""Dead letters: the stories and rows that could not be processed."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict

from daemon.ledger import now_ms
from daemon.records import DeadLettered, Listed, Outcome, Story


def settle(db: sqlite3.Connection, outcomes: Sequence[Outcome]) -> None:
    """Put dead letters on record, and strike those of stories that have recovered."""
    dead = [outcome for outcome in outcomes if isinstance(outcome, DeadLettered)]
    recovered = [outcome.story.key for outcome in outcomes if not isinstance(outcome, DeadLettered)]
    strike(db, recovered)
    db.executemany(
        "INSERT INTO dead_letters (key, reason, error, story, first_at, last_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)"
        " ON CONFLICT (key) DO UPDATE SET reason = ?2, error = ?3, story = ?4, attempts = attempts + 1, last_at = ?5",
        ((outcome.story.key, outcome.reason, outcome.error, _letter(outcome.story), now_ms()) for outcome in dead),
    )


def _letter(story: Listed) -> str | None:
    return json.dumps(asdict(story), ensure_ascii=False) if isinstance(story, Story) else None


def strike(db: sqlite3.Connection, keys: Sequence[str]) -> int:
    """Drop dead letters, within the caller's transaction; how many there were."""
    return db.execute(
        "DELETE FROM dead_letters WHERE key IN (SELECT value FROM json_each(?))", (json.dumps(keys),)
    ).rowcount
