"""Many stories at once, as arrays: what lookups bring up, and what an index is built from."""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from neardup.core.candidates.fingerprint_arrays import FingerprintArrays
from neardup.core.candidates.select import MOST_UNSEEN, Found, merge_found
from neardup.ledger import languages
from neardup.ledger.changes import last_seq

READ = "SELECT number, id, language, simhash, signature FROM stories"


def after(db: sqlite3.Connection, number: int, limit: int) -> FingerprintArrays:
    """The next stories by number, in order."""
    rows = db.execute(f"{READ} WHERE number > ? ORDER BY number LIMIT ?", (number, limit))
    return FingerprintArrays.of(rows, languages.names(db))


def held(db: sqlite3.Connection, ids: Iterable[int], numbers: Iterable[int]) -> FingerprintArrays:
    """Stories by id or by number, in order of their numbers, of those that the ledger holds."""
    rows = {
        row[0]: row
        for column, wanted in (("id", ids), ("number", numbers))
        for row in db.execute(f"{READ} WHERE {column} IN (SELECT value FROM json_each(?))", (json.dumps(list(wanted)),))
    }
    return FingerprintArrays.of((rows[number] for number in sorted(rows)), languages.names(db))


def there(
    db: sqlite3.Connection, found: Sequence[Found], applied: int
) -> tuple[FingerprintArrays, FingerprintArrays] | None:
    """The stories that lookups brought up, and those that no index as far as `applied` could bring up.

    None where that is too far from the ledger for these to be compared with each.
    """
    if not 0 <= last_seq(db) - applied <= MOST_UNSEEN:
        return None
    return held(db, *merge_found(found)), after(db, applied, MOST_UNSEEN)
