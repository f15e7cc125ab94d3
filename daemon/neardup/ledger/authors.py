"""The authors of flagged stories: whose text they copied, who copied theirs, and what moderators decided.

A story copies if it was published after the other story of its flag, which is by another author; one who is not known
counts as another.  Where the order of publication is not known, neither story copies: the flag is unordered.  The
verdicts repost, template and not similar say that nothing was copied, and a permitted copy is none of these.  Authors
who are not known are nowhere listed.

A moderator can ask the platform to hide an author's stories until they are decided: those with an open flag of which
they may be the later story.  That is taken back at any time, and the log of verdicts has both.

Authors themselves are shown the copies of their stories: the stories of others that hold text of theirs, and are not
known to have been published before.  What a verdict calls not similar is no copy.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from msgspec import Struct

from neardup.ledger import Row, languages, now_ms, select_named_rows, story_rows, transaction, webhook_events
from neardup.ledger.flags import JOINING
from neardup.ledger.story_rows import pack_id
from neardup.records import Kind, Language, ShownId, format_time

OPEN, PLAGIARISM = "open", "plagiarism"
OTHERS = "other_author IS NOT author"
COPIED = "status IN ('open', 'plagiarism', 'quotation')"
REPEATED = 2  # stories that copy, by which an author is a repeat offender
COPYING = f"copying_author IS NOT NULL AND status IN ('{OPEN}', '{PLAGIARISM}')"
# Either side of a flag may be the author's; the unary + keeps SQLite from scanning the index by status.
SIDE = (
    "SELECT author_{own} AS author, flag_id, {own} AS own, {other} AS other, later_id FROM flags"
    " WHERE author_{own} {whose} AND author_{other} IS NOT author_{own} AND later_id IS NOT {own}"
    " AND language IS NOT NULL AND {plus}same_author = 0 AND {plus}status IN {joining} AND flagged_at >= ?2"
)
OF_AUTHOR, OF_ALL = (
    " UNION ALL ".join(
        SIDE.format(own=own, other=other, whose=whose, plus=plus, joining=JOINING) for own, other in ("ab", "ba")
    )
    for whose, plus in (("= ?1", "+"), ("IS NOT NULL", ""))
)


class History(Struct, frozen=True):
    """How many stories by an author copy, by their verdict, and how many flags are unordered."""

    plagiarism: int = 0
    open: int = 0
    unordered: int = 0


class Copies(Struct, frozen=True):
    """How many stories copy: by the verdict plagiarism, undecided ones, and those with other verdicts only."""

    upheld: int = 0
    open: int = 0
    dismissed: int = 0


class FlaggedAuthor(Struct, frozen=True):
    """An author's flags with stories by others: their number by status, and the span of time in which they were made.

    Times are milliseconds, None without flags.  `own_pairs` is the number of flags between two stories of the author.
    """

    author_id: str
    history: History
    statuses: Counter[str]
    flagged_from: int | None
    flagged_until: int | None
    own_pairs: int


def read_histories(db: sqlite3.Connection, author_ids: Iterable[str | None]) -> dict[str, History]:
    """The histories of these authors, of whom None are not known."""
    found = {}
    for author_id in {known for known in author_ids if known is not None}:
        row = db.execute(
            f"SELECT count(DISTINCT iif(is_later AND status = '{PLAGIARISM}', story_id, NULL)),"
            f" count(DISTINCT iif(is_later AND status = '{OPEN}', story_id, NULL)),"
            f" count(*) FILTER (WHERE is_later IS NULL AND {COPIED})"
            f" FROM author_flags WHERE author = ? AND {OTHERS}",
            (pack_id(author_id),),
        ).fetchone()
        found[author_id] = History(*row)
    return found


def read_author(db: sqlite3.Connection, author_id: str) -> FlaggedAuthor | None:
    """What the flags say of an author; None for one without flags."""
    rows = db.execute(
        f"SELECT {OTHERS}, status, count(*), min(flagged_at), max(flagged_at) FROM author_flags WHERE author = ?"
        " GROUP BY 1, 2",
        (pack_id(author_id),),
    ).fetchall()
    if not rows:
        return None
    others = [row for with_others, *row in rows if with_others]
    return FlaggedAuthor(
        author_id,
        read_histories(db, [author_id])[author_id],
        Counter({status: n for status, n, *_ in others}),
        min((first for *_, first, _ in others), default=None),
        max((last for *_, last in others), default=None),
        sum(row[2] for row in rows if not row[0]) // 2,  # either story of such a flag is the author's
    )


def read_copies(db: sqlite3.Connection, author_id: str) -> tuple[Copies, Copies]:
    """The author's stories that copy from others, and the stories of others that copy the author's."""
    rows = db.execute(
        "SELECT is_later, worst, count(*) FROM (SELECT is_later,"
        f" max(CASE status WHEN '{PLAGIARISM}' THEN 2 WHEN '{OPEN}' THEN 1 ELSE 0 END) AS worst FROM author_flags"
        f" WHERE author = ? AND {OTHERS} AND is_later IS NOT NULL AND status <> 'permitted'"
        " GROUP BY is_later, iif(is_later, story_id, other_id))"
        " GROUP BY 1, 2",
        (pack_id(author_id),),
    )
    counted = {(bool(is_later), worst): n for is_later, worst, n in rows}
    own, others = (Copies(*(counted.get((is_later, worst), 0) for worst in (2, 1, 0))) for is_later in (True, False))
    return own, others


def list_flagged_stories(
    db: sqlite3.Connection, author_id: str, other: str | None = None, *, limit: int, offset: int = 0
) -> list[Row]:
    """The flagged stories of an author, by their flags with stories of others, or of one other author.

    Columns: id, name, title, language, published_at, similarity, `pairs` (the number of flags), `open` and `plagiarism`
    (those with this status), `later`, `before` and `unordered` (those in which the story was published later, before
    the other, or in an order that is not known), and `stories`, the number of stories without the limit.  Stories with
    the verdict plagiarism come first, then the most similar ones.
    """
    return select_named_rows(
        db,
        "SELECT f.*, d.id, d.name, d.title, d.language, d.published_at FROM"
        " (SELECT g.*, x.similarity, count(*) OVER () AS stories FROM"
        " (SELECT story_id, count(*) AS pairs, sum(status = 'open') AS open, sum(status = 'plagiarism') AS plagiarism,"
        " sum(is_later IS TRUE) AS later, sum(is_later IS FALSE) AS before, sum(is_later IS NULL) AS unordered"
        f" FROM author_flags WHERE author = ?1 AND {OTHERS} AND (?2 IS NULL OR other_author = ?2) GROUP BY story_id) g"
        " LEFT JOIN similarities x USING (story_id)"
        " ORDER BY plagiarism > 0 DESC, similarity DESC, story_id LIMIT ?3 OFFSET ?4) f"
        " CROSS JOIN described d ON d.id = f.story_id"
        " ORDER BY plagiarism > 0 DESC, similarity DESC, story_id",
        (pack_id(author_id), pack_id(other), limit, offset),
    ).fetchall()


def list_other_authors(db: sqlite3.Connection, author_id: str, limit: int) -> list[Row]:
    """The other authors of an author's flags, those with the most flags first.

    Columns: `other` (None for those not known), `pairs` (the number of flags), `copied_from` (the author's stories that
    copy the other's), `copied_by` (the other's that copy the author's), `unordered` (flags), `plagiarism` (flags with
    this verdict), and `authors`, the number of rows without the limit.
    """
    return select_named_rows(
        db,
        "SELECT CAST(other_author AS TEXT) AS other, count(*) AS pairs,"
        f" count(DISTINCT iif(is_later AND {COPIED}, story_id, NULL)) AS copied_from,"
        f" count(DISTINCT iif(NOT is_later AND {COPIED}, other_id, NULL)) AS copied_by,"
        f" count(*) FILTER (WHERE is_later IS NULL AND {COPIED}) AS unordered,"
        f" sum(status = '{PLAGIARISM}') AS plagiarism, count(*) OVER () AS authors"
        f" FROM author_flags WHERE author = ? AND {OTHERS} GROUP BY other_author"
        " ORDER BY pairs DESC, other_author LIMIT ?",
        (pack_id(author_id), limit),
    ).fetchall()


def list_own_pairs(db: sqlite3.Connection, author_id: str, limit: int) -> list[Row]:
    """The flags between two stories of an author, the newest first.

    Columns: a, b, kind, status, language, title_a, title_b, name_a, name_b.
    """
    return select_named_rows(
        db,
        "SELECT x.id AS a, y.id AS b, kind, status, x.language, x.title AS title_a, y.title AS title_b,"
        " x.name AS name_a, y.name AS name_b FROM"
        " (SELECT * FROM author_flags WHERE author = ? AND other_author = author AND story_id < other_id"
        " ORDER BY flagged_at DESC, story_id, other_id LIMIT ?) f"
        " CROSS JOIN described x ON x.id = f.story_id CROSS JOIN described y ON y.id = f.other_id"
        " ORDER BY flagged_at DESC, a, b",
        (pack_id(author_id), limit),
    ).fetchall()


def list_repeat_offenders(db: sqlite3.Connection, *, limit: int, offset: int = 0) -> list[Row]:
    """The authors of at least REPEATED stories that copy and are not decided otherwise, the most verdicts first.

    Columns: author_id, `plagiarism` (stories with this verdict), `stories` (those that copy), `pairs` (their open flags
    and those with the verdict plagiarism), and `authors`, the number of rows without the limit.
    """
    return select_named_rows(
        db,
        "SELECT CAST(copying_author AS TEXT) AS author_id, count(DISTINCT later_id) AS stories, count(*) AS pairs,"
        f" count(DISTINCT iif(status = '{PLAGIARISM}', later_id, NULL)) AS plagiarism, count(*) OVER () AS authors"
        f" FROM flags WHERE {COPYING} GROUP BY copying_author HAVING stories >= {REPEATED}"
        " ORDER BY plagiarism DESC, stories DESC, copying_author LIMIT ? OFFSET ?",
        (limit, offset),
    ).fetchall()


# Authors whose undecided stories are hidden.


def hide(db: sqlite3.Connection, author_id: str, note: str, moderator: str) -> None:
    """Ask the platform to hide the undecided stories of an author; does nothing where that was asked before."""
    now = now_ms()
    with transaction(db):
        is_new = db.execute(
            "INSERT INTO hidden_authors (author, note, moderator, hidden_at) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (pack_id(author_id), note, moderator, now),
        ).rowcount
        if is_new:
            _announce(db, {"at": format_time(now), "event": "hide", "by": moderator, "author": author_id, "note": note})


def show(db: sqlite3.Connection, author_id: str, moderator: str) -> None:
    """Take back that an author's stories are hidden; does nothing where they are not."""
    now = now_ms()
    with transaction(db):
        is_changed = db.execute(
            "UPDATE hidden_authors SET shown_at = ?, shown_by = ? WHERE author = ? AND shown_at IS NULL",
            (now, moderator, pack_id(author_id)),
        ).rowcount
        if is_changed:
            _announce(db, {"at": format_time(now), "event": "show", "by": moderator, "author": author_id, "note": ""})


def _announce(db: sqlite3.Connection, event: dict[str, Any]) -> None:
    """Have it posted that an author is hidden or shown, with the undecided stories, if verdicts have a webhook."""
    if webhook_events.is_wanted(db, webhook_events.VERDICTS):
        stories = list(story_rows.read_shown_ids(db, list_undecided(db, event["author"])).values())
        webhook_events.announce(db, webhook_events.VERDICTS, event | {"stories": stories})


def list_undecided(db: sqlite3.Connection, author_id: str) -> list[int]:
    """The stories of an author with an open flag of which they may be the later story, in ascending order."""
    rows = db.execute(
        f"SELECT DISTINCT story_id FROM author_flags WHERE author = ? AND {OTHERS} AND status = '{OPEN}'"
        " AND is_later IS NOT FALSE ORDER BY story_id",
        (pack_id(author_id),),
    )
    return [story_id for (story_id,) in rows]


def list_hidden(db: sqlite3.Connection) -> list[Row]:
    """The authors whose undecided stories are hidden now, the latest first.

    Columns: author, note, moderator, hidden_at.
    """
    return select_named_rows(
        db,
        "SELECT CAST(author AS TEXT) AS author, note, moderator, hidden_at FROM hidden_authors WHERE shown_at IS NULL"
        " ORDER BY hidden_at DESC, hiding_id DESC",
    ).fetchall()


def list_hidings(db: sqlite3.Connection, author_id: str) -> list[Row]:
    """How often the stories of an author were hidden, the latest first; `shown_at` is None while they are.

    Columns: note, moderator, hidden_at, shown_at, shown_by.
    """
    return select_named_rows(
        db,
        "SELECT note, moderator, hidden_at, shown_at, shown_by FROM hidden_authors WHERE author = ?"
        " ORDER BY hiding_id DESC",
        (pack_id(author_id),),
    ).fetchall()


def read_open_languages(db: sqlite3.Connection, author_id: str) -> set[Language]:
    """The languages of an author's open flags."""
    name_of = languages.map_names(db)
    rows = db.execute(
        f"SELECT DISTINCT language FROM flags WHERE (author_a = ?1 OR author_b = ?1) AND +status = '{OPEN}'",
        (pack_id(author_id),),
    )
    return {name_of[number] for (number,) in rows if number is not None}


def list_hiding_events(db: sqlite3.Connection, since: int) -> Iterator[dict[str, Any]]:
    """When authors were hidden and shown, at or after a time (ms), in the order of time.

    Members: event ("hide" or "show"), at (RFC 3339), by, author, and note.
    """
    rows = db.execute(
        "SELECT hiding_id, 'hide' AS event, hidden_at AS at, moderator, CAST(author AS TEXT), note"
        " FROM hidden_authors WHERE hidden_at >= ?1 UNION ALL"
        " SELECT hiding_id, 'show', shown_at, shown_by, CAST(author AS TEXT), ''"
        " FROM hidden_authors WHERE shown_at >= ?1 ORDER BY at, hiding_id, event",
        (since,),
    )
    for _, event, at, by, author, note in rows:
        yield {"at": format_time(at), "event": event, "by": by, "author": author, "note": note}


# The copies of an author's stories.


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
        "SELECT flag_id, own, o.title AS own_title, other, d.title, d.language, d.published_at, f.kind, f.similarity,"
        " f.status, f.flagged_at, c.later_id IS other AS is_later FROM"
        f" (SELECT flag_id, own, other, later_id FROM ({OF_AUTHOR}) WHERE ?3 IS NULL OR flag_id < ?3"
        " ORDER BY flag_id DESC LIMIT ?4) c CROSS JOIN described o ON o.id = own CROSS JOIN described d ON d.id = other"
        " CROSS JOIN flags f USING (flag_id) ORDER BY flag_id DESC",
        (pack_id(author_id), since, before, limit),
    )
    return [
        AuthorCopy(**row | {"is_later": bool(row["is_later"])})
        for row in story_rows.show_ids(db, rows, ("own", "other"))
    ]


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
