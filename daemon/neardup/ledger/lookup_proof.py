"""Which stories were looked up in an index that was whole, so that the others can be looked up again.

A comparison that finds the index whole proves all lookups before it.  A rebuild hides what was lost before, so the
lookups since the last proof are then in doubt.
"""

import sqlite3

from neardup.ledger import transaction
from neardup.ledger.changes import last_seq
from neardup.ledger.runs import get, put

PROVEN = "lookups_proven"  # the number of the last change that existed when the index was found whole
IN_DOUBT = "lookups_in_doubt"


def prove(db: sqlite3.Connection) -> None:
    """Record that the lookups of all stories so far saw a whole index, or that their pairs are found another way."""
    with transaction(db):
        put(db, PROVEN, str(last_seq(db)))
        db.execute("DELETE FROM meta WHERE key = ?", (IN_DOUBT,))


def doubt(db: sqlite3.Connection) -> None:
    """Record that lookups since the last proof may have missed stories."""
    put(db, IN_DOUBT, "1")


def in_doubt(db: sqlite3.Connection) -> bool:
    return get(db, IN_DOUBT) is not None


def proven(db: sqlite3.Connection) -> int:
    """The stories with higher numbers were looked up since the last proof."""
    return int(get(db, PROVEN) or 0)
