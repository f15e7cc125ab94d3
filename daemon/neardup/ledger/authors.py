"""The authors of flagged stories: whose text they copied, who copied theirs, and what moderators decided.

A story copies if it was published after the other story of its flag, which is by another author; one who is not known
counts as another.  Where the order of publication is not known, neither story copies: the flag is unordered.  The
verdicts repost, template and not similar say that nothing was copied.  Authors who are not known are nowhere listed.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from neardup.ledger import named_rows
from neardup.ledger.story_rows import pack_id

OPEN, PLAGIARISM = "open", "plagiarism"
OTHERS = "other_author IS NOT author"
COPIED = "status IN ('open', 'plagiarism', 'quotation')"
REPEATED = 2  # stories that copy, by which an author is a repeat offender
COPYING = f"copying_author IS NOT NULL AND status IN ('{OPEN}', '{PLAGIARISM}')"


@dataclass(frozen=True, slots=True)
class History:
    """How many stories by an author copy, by their verdict, and how many flags are unordered."""

    plagiarism: int = 0
    open: int = 0
    unordered: int = 0


@dataclass(frozen=True, slots=True)
class FlaggedAuthor:
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


def list_flagged_stories(
    db: sqlite3.Connection, author_id: str, other: str | None = None, *, limit: int, offset: int = 0
) -> list[sqlite3.Row]:
    """The flagged stories of an author, by their flags with stories of others, or of one other author.

    Columns: id, name, title, language, published_at, similarity, `pairs` (the number of flags), `open` and `plagiarism`
    (those with this status), `later`, `before` and `unordered` (those in which the story was published later, before
    the other, or in an order that is not known), and `stories`, the number of stories without the limit.  Stories with
    the verdict plagiarism come first, then the most similar ones.
    """
    return named_rows(
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


def list_other_authors(db: sqlite3.Connection, author_id: str, limit: int) -> list[sqlite3.Row]:
    """The other authors of an author's flags, those with the most flags first.

    Columns: `other` (None for those not known), `pairs` (the number of flags), `copied_from` (the author's stories that
    copy the other's), `copied_by` (the other's that copy the author's), `unordered` (flags), `plagiarism` (flags with
    this verdict), and `authors`, the number of rows without the limit.
    """
    return named_rows(
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


def list_own_pairs(db: sqlite3.Connection, author_id: str, limit: int) -> list[sqlite3.Row]:
    """The flags between two stories of an author, the newest first.

    Columns: a, b, kind, status, language, title_a, title_b, name_a, name_b.
    """
    return named_rows(
        db,
        "SELECT x.id AS a, y.id AS b, kind, status, x.language, x.title AS title_a, y.title AS title_b,"
        " x.name AS name_a, y.name AS name_b FROM"
        " (SELECT * FROM author_flags WHERE author = ? AND other_author = author AND story_id < other_id"
        " ORDER BY flagged_at DESC, story_id, other_id LIMIT ?) f"
        " CROSS JOIN described x ON x.id = f.story_id CROSS JOIN described y ON y.id = f.other_id"
        " ORDER BY flagged_at DESC, a, b",
        (pack_id(author_id), limit),
    ).fetchall()


def list_repeat_offenders(db: sqlite3.Connection, *, limit: int, offset: int = 0) -> list[sqlite3.Row]:
    """The authors of at least REPEATED stories that copy and are not decided otherwise, the most verdicts first.

    Columns: author_id, `plagiarism` (stories with this verdict), `stories` (those that copy), `pairs` (their open flags
    and those with the verdict plagiarism), and `authors`, the number of rows without the limit.
    """
    return named_rows(
        db,
        "SELECT CAST(copying_author AS TEXT) AS author_id, count(DISTINCT later_id) AS stories, count(*) AS pairs,"
        f" count(DISTINCT iif(status = '{PLAGIARISM}', later_id, NULL)) AS plagiarism, count(*) OVER () AS authors"
        f" FROM flags WHERE {COPYING} GROUP BY copying_author HAVING stories >= {REPEATED}"
        " ORDER BY plagiarism DESC, stories DESC, copying_author LIMIT ? OFFSET ?",
        (limit, offset),
    ).fetchall()
