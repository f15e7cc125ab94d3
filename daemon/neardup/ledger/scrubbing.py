"""How far the scrub of the index has come, and what it has found."""

import json
import sqlite3
from dataclasses import asdict, dataclass, replace

from neardup.ledger import now_ms
from neardup.ledger.runs import get, put

KEY = "scrub"


@dataclass(frozen=True, slots=True)
class Scrubbing:
    """The state of the scrub.

    The stories with numbers up to `number` were compared in this round, and the passage segments that begin up to
    `passages`.  `round_ended_at` is when the last story was compared last, in milliseconds.  Of all rounds together,
    `stories` were compared, of which `incomplete` lacked `missing` entries, and `damaged` segments were removed.
    """

    number: int = 0
    passages: int = 0
    round_ended_at: int | None = None
    stories: int = 0
    incomplete: int = 0
    missing: int = 0
    damaged: int = 0

    def ended_round(self) -> "Scrubbing":
        """The state at the end of a round."""
        return replace(self, number=0, round_ended_at=now_ms())


def state(db: sqlite3.Connection) -> Scrubbing:
    record = get(db, KEY)
    return Scrubbing(**json.loads(record)) if record else Scrubbing()


def put_state(db: sqlite3.Connection, state: Scrubbing) -> None:
    put(db, KEY, json.dumps(asdict(state)))
