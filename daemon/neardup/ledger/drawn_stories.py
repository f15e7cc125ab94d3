"""Draws stories of each language at random."""

import json
import random
import sqlite3

from neardup.ledger import languages
from neardup.ledger.changes import last_seq
from neardup.records import Language, Story

DRAWN_AT_ONCE = 2_000
ROUNDS = 10  # a language with less than one story in a thousand may get fewer than wanted


def draw(db: sqlite3.Connection, wanted: int, words: range) -> dict[Language, list[Story]]:
    """Up to `wanted` stories of each language with a number of words in the range; works are left out.

    The cost does not depend on the number of stories.
    """
    sizes = dict(db.execute("SELECT number, stories FROM languages WHERE stories > 0"))
    name_of = languages.names(db)
    found: dict[int, dict[int, Story]] = {number: {} for number in sizes}
    is_small, generator = sum(sizes.values()) <= DRAWN_AT_ONCE, random.SystemRandom()
    for _ in range(1 if is_small else ROUNDS):
        rows = _all(db) if is_small else _at_random(db, generator)
        generator.shuffle(rows)
        for story_id, language, length, path in rows:
            if story_id >= 0 and length in words and len(found[language]) < wanted:
                found[language][story_id] = Story(story_id, name_of[language], path)
        if all(len(some) >= min(wanted, sizes[number]) for number, some in found.items()):
            break
    return {name_of[number]: list(some.values()) for number, some in found.items()}


Rows = list[tuple[int, int, int, str | None]]  # id, language, words, path


def _all(db: sqlite3.Connection) -> Rows:
    return db.execute("SELECT id, language, words, path FROM stories").fetchall()


def _at_random(db: sqlite3.Connection, generator: random.Random) -> Rows:
    drawn = json.dumps(generator.choices(range(1, last_seq(db) + 1), k=DRAWN_AT_ONCE))
    nearest = "SELECT (SELECT min(number) FROM stories WHERE number >= value) FROM json_each(?)"
    return db.execute(f"SELECT id, language, words, path FROM stories WHERE number IN ({nearest})", (drawn,)).fetchall()
