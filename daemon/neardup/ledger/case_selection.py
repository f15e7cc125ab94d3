"""Filters of cases."""

import sqlite3
from dataclasses import dataclass
from enum import StrEnum

from neardup.ledger import languages, now_ms
from neardup.ledger.compact_columns import packed_id
from neardup.records import Kind, Language

OPEN, JUDGED, EVERY = "open", "judged", "every"


class Authors(StrEnum):
    """Whether the stories of each flag of a case are by one author; an author who is not known counts as another."""

    SAME = "same"
    OTHER = "other"


class Inbox(StrEnum):
    """Whose turn it is."""

    MINE = "mine"  # cases that the moderator holds
    FREE = "free"  # cases that no moderator holds
    SECOND = "second"  # cases with open flags on which another moderator asked for a second opinion


@dataclass(frozen=True, slots=True)
class CaseSelection:
    """Filters of cases, which must all match; an empty one or None matches all.

    `status` is OPEN (some flags have no verdict), JUDGED (none is open), EVERY, or a verdict that a flag has.  `score`
    and `similarity`, 0 to 1, are minimums; `author` wrote a story of a flag; `since` (inclusive) and `until`
    (exclusive) limit the time of the latest flag, in milliseconds.  `catalogue` is that of a work that is copied.
    Without `authors`, the cases of one author that `detection.same_author = "hide"` leaves out match only if `hidden`.
    `inbox` is that of `moderator`.
    """

    languages: tuple[Language, ...] = ()
    kind: Kind | None = None
    status: str = OPEN
    score: float | None = None
    similarity: float | None = None
    author: str | None = None
    authors: Authors | None = None
    catalogue: str | None = None
    since: int | None = None
    until: int | None = None
    inbox: Inbox | None = None
    moderator: str = ""
    hidden: bool = False


def conditions(db: sqlite3.Connection, selection: CaseSelection) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the table `cases`, with its values."""
    holding: list[tuple[str, list[object]]] = [("true", [])]
    if selection.languages:
        number_of = languages.numbers(db)
        numbers = [number_of.get(language) for language in selection.languages]
        holding.append((f"language IN ({', '.join('?' * len(numbers))})", list(numbers)))
    if selection.kind is not None:
        holding.append(("instr(kinds, ?)", [f",{selection.kind},"]))
    if selection.catalogue is not None:
        holding.append(("instr(catalogues, ?)", [f",{selection.catalogue},"]))
    if selection.status == OPEN:
        holding.append(("open_flags > 0", []))
    elif selection.status == JUDGED:
        holding.append(("open_flags = 0", []))
    elif selection.status != EVERY:
        holding.append(("instr(statuses, ?)", [f",{selection.status},"]))
    if selection.author is not None:
        author = packed_id(selection.author)
        holding.append(("case_id IN (SELECT case_id FROM flags WHERE author_a = ? OR author_b = ?)", [author, author]))
    if selection.authors is not None:
        holding.append(("same_author = ?", [selection.authors is Authors.SAME]))
    elif not selection.hidden:
        holding.append(("NOT hidden", []))
    limits = (("score >= ?", selection.score), ("similarity >= ?", selection.similarity))
    times = (("flagged_at >= ?", selection.since), ("flagged_at < ?", selection.until))
    holding += [(sql, [value]) for sql, value in (*limits, *times) if value is not None]
    holding += _of_inbox(selection)
    return " AND ".join(sql for sql, _ in holding), [value for _, values in holding for value in values]


def _of_inbox(selection: CaseSelection) -> list[tuple[str, list[object]]]:
    match selection.inbox:
        case Inbox.MINE:
            mine = "case_id IN (SELECT case_id FROM leases WHERE moderator = ? AND until > ?)"
            return [(mine, [selection.moderator, now_ms()])]
        case Inbox.FREE:
            return [("case_id NOT IN (SELECT case_id FROM leases WHERE until > ?)", [now_ms()])]
        case Inbox.SECOND:
            asked = (  # as a subquery, because SQLite would search all cases of another filter for these few
                "case_id IN (SELECT case_id FROM cases WHERE unsure <> '[]'"
                " AND EXISTS (SELECT 1 FROM json_each(unsure) WHERE value <> ?))"
            )
            return [(asked, [selection.moderator])]
    return []
