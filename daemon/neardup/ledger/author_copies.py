"""The copies of an author's stories: the stories of others that hold text of theirs, as flags on record say.

A copy is the other story of a flag, by another author, that is not known to have been published before the author's
own.  What a verdict calls not similar is none, nor is a withdrawn flag.  An author who is not known has no copies here.
"""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from neardup.ledger import AMONG, Row, dump_list, select_named_rows
from neardup.ledger.flags import JOINING
from neardup.ledger.story_rows import pack_id
from neardup.records import Kind, Language, ShownId, show_id

STATUSES = ", ".join(f"'{status}'" for status in JOINING)
# Either side of a flag may be the author's; the unary + keeps SQLite from scanning the index by status.
SIDE = (
    "SELECT author_{own} AS author, flag_id, {own} AS own, {other} AS other, later_id FROM flags"
    " WHERE author_{own} {whose} AND author_{other} IS NOT author_{own} AND later_id IS NOT {own}"
    " AND language IS NOT NULL AND {plus}same_author = 0 AND {plus}status IN (" + STATUSES + ") AND flagged_at >= ?2"
)
OF_AUTHOR, OF_ALL = (
    " UNION ALL ".join(SIDE.format(own=own, other=other, whose=whose, plus=plus) for own, other in ("ab", "ba"))
    for whose, plus in (("= ?1", "+"), ("IS NOT NULL", ""))
)


class AuthorCopy(NamedTuple):
    """A copy: the author's own story, the other one, and what is known of the pair; times are in milliseconds.

    `is_later` says whether the copy is known to have been published later.
    """

    flag_id: int
    own: ShownId
    own_title: str
    other: ShownId
    title: str
    language: Language
    published_at: int | None
    kind: Kind
    similarity: float
    status: str
    flagged_at: int
    is_later: bool


class AuthorNews(NamedTuple):
    """The new copies of an author: how many, and the latest of them."""

    author_id: str
    total: int
    copies: list[AuthorCopy]


def list_copies(db: sqlite3.Connection, author_id: str, since: int, before: int | None, limit: int) -> list[AuthorCopy]:
    """The copies of an author's stories flagged at or after a time, the latest flag first, those `before` a flag."""
    rows = select_named_rows(
        db,
        f"SELECT flag_id, own, other, later_id FROM ({OF_AUTHOR}) WHERE ?3 IS NULL OR flag_id < ?3"
        " ORDER BY flag_id DESC LIMIT ?4",
        (pack_id(author_id), since, before, limit),
    ).fetchall()
    return _describe(db, rows)


def list_news(db: sqlite3.Connection, since: int, after: str | None, limit: int, copies: int) -> list[AuthorNews]:
    """The authors with copies flagged at or after a time, `after` one of them, each with up to so many copies."""
    rows = select_named_rows(
        db,
        "SELECT CAST(author AS TEXT) AS author, count(*) AS total FROM"
        f" ({OF_ALL}) WHERE ?1 IS NULL OR author > ?1 GROUP BY author ORDER BY author LIMIT ?3",
        (pack_id(after), since, limit),
    ).fetchall()
    return [
        AuthorNews(row["author"], row["total"], list_copies(db, row["author"], since, None, copies)) for row in rows
    ]


def _describe(db: sqlite3.Connection, rows: Sequence[Row]) -> list[AuthorCopy]:
    stories = dump_list({row[side] for row in rows for side in ("own", "other")})
    described = f"SELECT id, name, title, language, published_at FROM described WHERE id {AMONG}"
    known = {row["id"]: row for row in select_named_rows(db, described, (stories,))}
    pairs = f"SELECT flag_id, kind, similarity, status, flagged_at FROM flags WHERE flag_id {AMONG}"
    flags = {row["flag_id"]: row for row in select_named_rows(db, pairs, (dump_list(row["flag_id"] for row in rows),))}
    found = []
    for row in rows:
        own, other, flag = known[row["own"]], known[row["other"]], flags[row["flag_id"]]
        copy = AuthorCopy(
            flag_id=row["flag_id"],
            own=show_id(own["id"], own["name"]),
            own_title=own["title"],
            other=show_id(other["id"], other["name"]),
            title=other["title"],
            language=other["language"],
            published_at=other["published_at"],
            kind=flag["kind"],
            similarity=flag["similarity"],
            status=flag["status"],
            flagged_at=flag["flagged_at"],
            is_later=row["later_id"] == row["other"],
        )
        found.append(copy)
    return found
