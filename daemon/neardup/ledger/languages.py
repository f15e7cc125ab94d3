"""The languages of a ledger: the numbers that rows and arrays contain instead of names, and the counts of stories.

A number is assigned once and never changes.  Every transaction that adds or removes stories updates the counts, because
to count them would take a pass over all rows.
"""

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable

from neardup.errors import Fatal
from neardup.ledger import transaction
from neardup.records import Language


def map_names(db: sqlite3.Connection) -> dict[int, Language]:
    """Number -> language, in order of the numbers."""
    return dict(db.execute("SELECT number, name FROM languages ORDER BY number"))


def map_numbers(db: sqlite3.Connection) -> dict[Language, int]:
    """Language -> number, in order of the numbers."""
    return {name: number for number, name in map_names(db).items()}


def register(db: sqlite3.Connection, languages: Collection[Language]) -> None:
    """Assign the next numbers to the languages that are new to the ledger, in their order.

    Raises Fatal if the ledger has stories in a language that is not in `languages`.
    """
    if missing := [name for name in count_by_language(db) if name not in languages]:
        tables = ", ".join(f"[languages.{name}]" for name in missing)
        raise Fatal(f"the ledger holds stories of {', '.join(missing)}: the configuration lacks {tables}")
    if set(languages) <= map_numbers(db).keys():
        return
    with transaction(db):
        known = map_numbers(db)
        new = (language for language in languages if language not in known)
        db.executemany(
            "INSERT INTO languages (number, name) VALUES (?, ?)", enumerate(new, max(known.values(), default=-1) + 1)
        )


def count_by_language(db: sqlite3.Connection) -> dict[str, int]:
    """Stories by language, of those that have any."""
    return dict(db.execute("SELECT name, stories FROM languages WHERE stories > 0 ORDER BY name"))


def update_counts(db: sqlite3.Connection, added: Iterable[int], gone: Iterable[int]) -> None:
    """Update the counts of stories; `added` and `gone` have the number of the language of each such story."""
    steps = Counter(added)
    steps.subtract(gone)
    db.executemany("UPDATE languages SET stories = stories + ?2 WHERE number = ?1", steps.items())
