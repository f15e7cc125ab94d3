"""Chapters: which serial a story is a chapter of.

The chapters of a serial are the stories of an author that the listing gives one `series_id`; without one, those whose
titles are a stem with a number (`core.serials`).  So an author and the id or the stem name a serial; where
the stem is empty, the word for chapter, or else NAMELESS, stands for it in the name.  The ledger keeps the names of
those that flagged stories are of, and has the permissions of a serial follow them.
"""

import sqlite3
from collections.abc import Iterable
from typing import NamedTuple

import xxhash

from neardup.core.serials import parse_chapter_title
from neardup.ledger import AMONG, dump_list

UNDECIDED = "+status IN ('open', 'permitted')"  # the unary + keeps SQLite from reading all of them by the status


class Described(NamedTuple):
    """What the listing says of a story that makes it a chapter."""

    author: int | str
    series: int | str | None
    title: str | None

    @property
    def name(self) -> str | None:
        """The name of its serial among those of its author; None for a story that is no chapter."""
        if self.series is not None:
            return str(self.series)
        parsed = parse_chapter_title(self.title or "")
        return None if parsed is None else parsed.serial

    @property
    def serial(self) -> int | None:
        """The hash that identifies its serial; None for a story that is no chapter."""
        if self.series is not None:
            return hash_parts("series", self.author, self.series)
        parsed = parse_chapter_title(self.title or "")
        return None if parsed is None else hash_parts("titles", self.author, parsed.stem)

    @property
    def number(self) -> int | None:
        parsed = parse_chapter_title(self.title or "")
        return None if parsed is None else parsed.number


def hash_parts(*parts: object) -> int:
    """A number of 63 bits that stands for these values."""
    return xxhash.xxh3_64_intdigest("\0".join(map(str, parts)).encode("utf-8", "replace")) >> 1


def read_all(db: sqlite3.Connection, story_ids: Iterable[int]) -> dict[int, Described]:
    """What the listing says of those of these stories whose authors are known, by id."""
    rows = db.execute(
        "SELECT id, author_id, series_id, coalesce(title, page_title) FROM stories"
        f" WHERE id {AMONG} AND author_id IS NOT NULL",
        (dump_list(story_ids),),
    )
    return {story_id: Described(*about) for story_id, *about in rows}


def put(db: sqlite3.Connection, story_ids: Iterable[int]) -> None:
    """Record which serials these stories are chapters of, in the caller's transaction, which refreshes similarities."""
    about, ids = read_all(db, wanted := set(story_ids)), dump_list(wanted)
    now = {story_id: name for story_id, described in about.items() if (name := described.name) is not None}
    known = dict(db.execute(f"SELECT story_id, serial FROM chapters WHERE story_id {AMONG}", (ids,)))
    if moved := [(story_id, now.get(story_id)) for story_id in wanted if known.get(story_id) != now.get(story_id)]:
        db.executemany("DELETE FROM chapters WHERE story_id = ?", ((story_id,) for story_id, _ in moved))
        db.executemany("INSERT INTO chapters VALUES (?, ?)", (row for row in moved if row[1] is not None))
        if db.execute("SELECT EXISTS (SELECT 1 FROM permissions WHERE serial IS NOT NULL)").fetchone()[0]:
            db.executemany(
                f"UPDATE flags SET status = status WHERE (a = ?1 OR b = ?1) AND {UNDECIDED}",
                ((story_id,) for story_id, _ in moved),
            )
