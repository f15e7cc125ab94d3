"""The numbers of the languages in this ledger, which assigns them: arrays and rows carry the number."""

import sqlite3
from collections.abc import Collection

from neardup.errors import Fatal
from neardup.ledger import runs, transaction
from neardup.records import Language


def names(db: sqlite3.Connection) -> dict[int, Language]:
    """Number -> language, in order of the numbers."""
    return dict(db.execute("SELECT number, name FROM languages ORDER BY number"))


def numbers(db: sqlite3.Connection) -> dict[Language, int]:
    """Language -> number, in order of the numbers."""
    return {name: number for number, name in names(db).items()}


def register(db: sqlite3.Connection, languages: Collection[Language]) -> None:
    """Give the languages that the ledger does not know yet the next numbers, in their order.

    Raises Fatal where the ledger has stories of a language that is not among them.
    """
    if missing := [name for name in runs.stories_by_language(db) if name not in languages]:
        tables = ", ".join(f"[languages.{name}]" for name in missing)
        raise Fatal(f"the ledger holds stories of {', '.join(missing)}: the configuration lacks {tables}")
    if set(languages) <= numbers(db).keys():
        return
    with transaction(db):
        known = numbers(db)
        new = (language for language in languages if language not in known)
        db.executemany(
            "INSERT INTO languages (number, name) VALUES (?, ?)", enumerate(new, max(known.values(), default=-1) + 1)
        )
