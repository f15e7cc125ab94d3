"""Queues of cases: their filters, their orders, and how many cases each filter shows.

The desk lists cases by a CaseSelection.  The export lists the cases of a selection of flags, each with its best flags;
neardup.ledger.cases keeps which case a flag belongs to.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from neardup.core.verify.tiers import find_tier, list_kinds
from neardup.ledger import Row, join_conditions, languages, list_conditions, now_ms, select_named_rows
from neardup.ledger.flags import Selection, make_condition
from neardup.ledger.story_rows import pack_id
from neardup.records import PERMITTED, Kind, Language

OPEN, JUDGED, EVERY = "open", "judged", "every"
UNDECIDED = f",{PERMITTED},"  # the statuses of a case whose pairs are all permitted
DECIDED_BY = (
    "case_id IN (SELECT f.case_id FROM active_verdicts v CROSS JOIN flags f ON f.a = v.a AND f.b = v.b"
    " WHERE v.moderator = ?)"
)
OF_COMPLAINTS = (
    "case_id IN (SELECT f.case_id FROM complaints p CROSS JOIN flags f ON f.a = p.story_id WHERE {open}"
    " UNION ALL SELECT f.case_id FROM complaints p CROSS JOIN flags f ON f.b = p.story_id WHERE {open})"
)
CASE = "coalesce(case_id, -flag_id)"  # a flag that has no case yet is one by itself


class Authors(StrEnum):
    """Whether the stories of each flag of a case are by one author; an author who is not known counts as another."""

    SAME = "same"
    OTHER = "other"


class Inbox(StrEnum):
    """Whose turn it is."""

    MINE = "mine"  # cases that the moderator holds
    FREE = "free"  # cases that no moderator holds
    SECOND = "second"  # cases with open flags on which another moderator asked for a second opinion
    THIRD = "third"  # cases on which two others disagreed in a blind second review


class Complained(StrEnum):
    """Whether a story of a case has a complaint that is not closed."""

    OPEN = "open"
    OVERDUE = "overdue"


class CaseSelection(Struct, frozen=True):
    """Filters of cases, which must all match; an empty one or None matches all.

    `status` is OPEN (some flags are), JUDGED (none is, and a verdict was given), EVERY, or a status that a flag has.
    `similarity`, 0 to 1, is a minimum; `author` wrote a story of a flag; `since` (inclusive) and `until`
    (exclusive) limit the time of the latest flag, in milliseconds.  `catalogue` is that of a work that is copied, and
    `decided_by` the moderator who gave a verdict that still applies.
    Without `authors`, the cases of one author that `detection.same_author = "hide"` leaves out match only if `hidden`.
    `inbox` is that of `moderator`.  `complaint` asks for an open one about a story of a flag.
    """

    languages: tuple[Language, ...] = ()
    kind: Kind | None = None
    status: str = OPEN
    similarity: float | None = None
    author: str | None = None
    authors: Authors | None = None
    catalogue: str | None = None
    decided_by: str | None = None
    since: int | None = None
    until: int | None = None
    inbox: Inbox | None = None
    moderator: str = ""
    hidden: bool = False
    complaint: Complained | None = None


def make_case_condition(db: sqlite3.Connection, selection: CaseSelection) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the table `cases`, with its values."""
    clauses: list[tuple[str, list[object]]] = []
    if selection.languages:
        number_of = languages.map_numbers(db)
        numbers = [number_of.get(language) for language in selection.languages]
        clauses.append((f"language IN ({', '.join('?' * len(numbers))})", list(numbers)))
    if selection.status == OPEN:
        clauses.append(("open_flags > 0", []))
    elif selection.status == JUDGED:
        clauses.append(("open_flags = 0 AND statuses <> ?", [UNDECIDED]))
    elif selection.status != EVERY:
        clauses.append(("instr(statuses, ?)", [f",{selection.status},"]))
    if selection.authors is not None:
        clauses.append(("same_author = ?", [selection.authors is Authors.SAME]))
    elif not selection.hidden:
        clauses.append(("NOT hidden", []))
    clauses += list_conditions(
        (
            ("instr(kinds, ',' || ? || ',')", selection.kind),
            ("instr(catalogues, ',' || ? || ',')", selection.catalogue),
            ("similarity >= ?", selection.similarity),
            ("flagged_at >= ?", selection.since),
            ("flagged_at < ?", selection.until),
            ("case_id IN (SELECT case_id FROM flags WHERE author_a = ? OR author_b = ?)", pack_id(selection.author)),
            (DECIDED_BY, selection.decided_by),
        )
    )
    if selection.complaint is not None:
        now = now_ms() if selection.complaint is Complained.OVERDUE else 2**62
        clauses.append((OF_COMPLAINTS.format(open="p.closed_at IS NULL AND p.due_at < ?"), [now, now]))
    clauses += _list_inbox_conditions(selection)
    return join_conditions(clauses)


def _list_inbox_conditions(selection: CaseSelection) -> list[tuple[str, list[object]]]:
    match selection.inbox:
        case Inbox.MINE:
            mine = "case_id IN (SELECT case_id FROM leases WHERE moderator = ? AND until > ?)"
            return [(mine, [selection.moderator, now_ms()])]
        case Inbox.FREE:
            return [("case_id NOT IN (SELECT case_id FROM leases WHERE until > ?)", [now_ms()])]
        case Inbox.SECOND:
            asked_cases = (  # as a subquery, because SQLite would search all cases of another filter for these few
                "case_id IN (SELECT case_id FROM cases WHERE unsure <> '[]'"
                " AND EXISTS (SELECT 1 FROM json_each(unsure) WHERE value <> ?))"
            )
            return [(asked_cases, [selection.moderator])]
        case Inbox.THIRD:
            disputed = (
                "case_id IN (SELECT case_id FROM second_reviews WHERE first <> second"
                " AND first_moderator <> ? AND second_moderator <> ?)"
            )
            return [(disputed, [selection.moderator, selection.moderator])]
    return []


class Order(StrEnum):
    """The orders of a queue; the first key of each, from the largest."""

    SIMILARITY = "similarity"
    DATE = "date"  # of the latest flag
    HISTORY = "history"  # how many cases of the author have the verdict plagiarism
    STORIES = "stories"


FIRST_KEYS = {
    Order.SIMILARITY: "similarity",
    Order.DATE: "flagged_at",
    Order.HISTORY: "history",
    Order.STORIES: "stories",
}


def _order_by(order: Order) -> str:
    first = "" if order is Order.SIMILARITY else f"cases.{FIRST_KEYS[order]} DESC, "
    return f"{first}cases.similarity DESC, cases.severity, cases.case_id"


def select(
    db: sqlite3.Connection,
    selection: CaseSelection,
    order: Order = Order.SIMILARITY,
    *,
    limit: int = -1,
    offset: int = 0,
) -> list[Row]:
    """The cases of a selection in this order, then by similarity, severity and id.

    Columns: those of the table `cases`, with `language` by its name and `author` as text, and of the lead: title,
    name, published_at, words, copied_words, sources.
    """
    where, values = make_case_condition(db, selection)
    return _describe_cases(db, where, values, _order_by(order), limit, offset)


def read_case(db: sqlite3.Connection, case_id: int) -> Row | None:
    """A case as `select` returns it; None if there is none."""
    return next(iter(_describe_cases(db, "case_id = ?", [case_id], "cases.case_id", 1, 0)), None)


def select_ids(
    db: sqlite3.Connection, selection: CaseSelection, order: Order = Order.SIMILARITY, *, limit: int, offset: int
) -> list[int]:
    """The ids of the cases that `select` returns."""
    where, values = make_case_condition(db, selection)
    rows = db.execute(
        f"SELECT case_id FROM cases WHERE {where} ORDER BY {_order_by(order)} LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [row[0] for row in rows]


def count(db: sqlite3.Connection, selection: CaseSelection) -> int:
    """How many cases match a selection."""
    where, values = make_case_condition(db, selection)
    return int(db.execute(f"SELECT count(*) FROM cases WHERE {where}", values).fetchone()[0])


def _describe_cases(  # noqa: PLR0917 - the clauses of a query, in their order
    db: sqlite3.Connection, where: str, values: list[object], keys: str, limit: int, offset: int
) -> list[Row]:
    return select_named_rows(
        db,
        "SELECT case_id, lead, d.language, CAST(author AS TEXT) AS author, cases.similarity, severity,"
        " cases.kinds, statuses, flags, open_flags, stories, same_author, hidden, flagged_at, unsure, is_ordered,"
        " history, catalogues, d.title, d.name, d.published_at, d.words, s.copied_words, s.sources"
        f" FROM (SELECT case_id FROM cases WHERE {where} ORDER BY {keys} LIMIT ? OFFSET ?)"
        " JOIN cases USING (case_id) JOIN described d ON d.id = lead LEFT JOIN similarities s ON s.story_id = lead"
        f" ORDER BY {keys}",
        (*values, limit, offset),
    ).fetchall()


class Counts(Struct, frozen=True):
    """How many cases match a selection, and how many with another value of one filter; `hidden` are left out of it."""

    total: int
    hidden: int
    languages: Counter[Language]
    kinds: Counter[Kind]
    statuses: Counter[str]
    authors: Counter[Authors]
    catalogues: Counter[str]


def count_by_filter(db: sqlite3.Connection, selection: CaseSelection) -> Counts:
    """How many cases match a selection, and how many would with another value of one filter."""
    wide = replace(selection, languages=(), kind=None, status=EVERY, authors=None, catalogue=None, hidden=True)
    where, values = make_case_condition(db, wide)
    name_of = languages.map_names(db)
    groups = [
        _Group(
            name_of[language],
            _list_names(kinds),
            _list_names(statuses),
            _list_names(named),
            bool(same),
            hidden > selection.hidden,
            n,
        )
        for language, kinds, statuses, named, same, hidden, n in db.execute(
            "SELECT language, kinds, statuses, catalogues, same_author, hidden, count(*) FROM cases"
            f" WHERE {where} GROUP BY 1, 2, 3, 4, 5, 6",
            values,
        )
    ]
    catalogues = Counter({selection.catalogue: 0} if selection.catalogue else {})
    found = Counts(0, 0, Counter(), Counter(), Counter(), Counter(), catalogues)
    shown = hidden = 0
    for group in groups:
        fits = {
            "language": not selection.languages or group.language in selection.languages,
            "kind": selection.kind is None or selection.kind in group.kinds,
            "status": selection.status in group.all_statuses,
            "authors": selection.authors in group.authors,
            "catalogue": selection.catalogue is None or selection.catalogue in group.catalogues,
        }
        # What a filter would show with another value: the cases that all the other filters let through.
        others = {name: all(fit for other, fit in fits.items() if other != name) for name in fits}
        shown += group.n * all(fits.values())
        hidden += group.n * (others["authors"] and selection.authors is None and group.hidden)
        _add(found.languages, [group.language] if others["language"] else [], group.n)
        _add(found.kinds, group.kinds if others["kind"] else [], group.n)
        _add(found.statuses, group.all_statuses if others["status"] else [], group.n)
        _add(found.authors, group.authors - {None} if others["authors"] else [], group.n)
        _add(found.catalogues, group.catalogues if others["catalogue"] else [], group.n)
    return replace(found, total=shown, hidden=hidden)


class _Group(Struct, frozen=True):
    """`n` cases that no filter distinguishes."""

    language: Language
    kinds: set[Kind]
    statuses: set[str]
    catalogues: set[str]
    same_author: bool
    hidden: bool
    n: int

    @property
    def all_statuses(self) -> set[str]:
        judged = set() if self.statuses == {PERMITTED} else {JUDGED}
        return self.statuses - {OPEN} | {EVERY} | ({OPEN} if OPEN in self.statuses else judged)

    @property
    def authors(self) -> set[Any]:
        """The values of the filter by authors that these cases match; None is no filter."""
        return {Authors.SAME if self.same_author else Authors.OTHER} | (set() if self.hidden else {None})


def _add(counter: Counter[Any], names: Iterable[Any], n: int) -> None:
    for name in names:
        counter[name] += n


def _list_names(listed: str) -> set[str]:
    return {name for name in listed.split(",") if name}


class FlaggedCase(Struct, frozen=True):
    """A case with flags of a selection: how many there are, and the most severe kind of them.

    `lead` is the story that the case is about; None where the case is not on record yet.
    """

    case_id: int
    lead: int | None
    language: Language
    kind: Kind
    flags: int


def list_flagged_cases(db: sqlite3.Connection, selection: Selection) -> list[FlaggedCase]:
    """The cases of the selected flags, the most similar at the top, then by severity."""
    where, values = make_condition(db, selection)
    name_of = languages.map_names(db)
    kind_of = {find_tier(kind).severity: kind for kind in list_kinds()}
    rows = db.execute(
        "SELECT f.case_id, lead, f.language, f.severity, f.flags FROM"
        f" (SELECT {CASE} AS case_id, min(language) AS language, min(severity) AS severity, count(*) AS flags"
        f" FROM flags WHERE {where} GROUP BY 1) f LEFT JOIN cases c ON c.case_id = f.case_id"
        " ORDER BY c.similarity DESC, f.severity, f.flags DESC, f.case_id",
        values,
    )
    return [
        FlaggedCase(case_id, lead, name_of[language], kind_of[severity], flags)
        for case_id, lead, language, severity, flags in rows
    ]


def list_best_flags(
    db: sqlite3.Connection, selection: Selection, case_id: int, lead: int | None, limit: int
) -> list[int]:
    """The ids of the selected flags of a case: those of its lead are at the top, then the most severe."""
    where, values = make_condition(db, selection, by_flag_id=True)
    column, number = ("flag_id", -case_id) if lead is None else ("case_id", case_id)
    rows = db.execute(
        f"SELECT flag_id FROM flags WHERE {where} AND {column} = ?"
        " ORDER BY ? IN (a, b) DESC, severity, strength DESC, a, b LIMIT ?",
        (*values, number, lead, limit),
    )
    return [row[0] for row in rows]
