"""Queues of cases: their filters, their orders, and how many cases each filter shows."""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from neardup.ledger import languages
from neardup.ledger.case_selection import EVERY, JUDGED, OPEN, Authors, CaseSelection, conditions
from neardup.records import Kind, Language


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


@dataclass(frozen=True, slots=True)
class Counts:
    """How many cases match a selection, and how many with another value of one filter; `hidden` are left out of it."""

    total: int
    hidden: int
    languages: Counter[Language]
    kinds: Counter[Kind]
    statuses: Counter[str]
    authors: Counter[Authors]
    catalogues: Counter[str]


def select(
    db: sqlite3.Connection,
    selection: CaseSelection,
    order: Order = Order.SIMILARITY,
    *,
    limit: int = -1,
    offset: int = 0,
) -> list[sqlite3.Row]:
    """The cases of a selection in this order, then by similarity, severity and id.

    Columns: those of the table `cases`, with `language` by its name and `author` as text, and of the lead: title,
    name, published_at, words, copied_words, sources.
    """
    holding, values = conditions(db, selection)
    return _described(db, holding, values, _keys(order), limit, offset)


def one(db: sqlite3.Connection, case_id: int) -> sqlite3.Row | None:
    """A case as `select` returns it; None if there is none."""
    return next(iter(_described(db, "case_id = ?", [case_id], "cases.case_id", 1, 0)), None)


def ids(
    db: sqlite3.Connection, selection: CaseSelection, order: Order = Order.SIMILARITY, *, limit: int, offset: int
) -> list[int]:
    """The ids of the cases that `select` returns."""
    holding, values = conditions(db, selection)
    rows = db.execute(
        f"SELECT case_id FROM cases WHERE {holding} ORDER BY {_keys(order)} LIMIT ? OFFSET ?",
        (*values, limit, offset),
    )
    return [row[0] for row in rows]


def count(db: sqlite3.Connection, selection: CaseSelection) -> int:
    """How many cases match a selection."""
    holding, values = conditions(db, selection)
    return int(db.execute(f"SELECT count(*) FROM cases WHERE {holding}", values).fetchone()[0])


def counts(db: sqlite3.Connection, selection: CaseSelection) -> Counts:
    """How many cases match a selection, and how many would with another value of one filter."""
    wide = replace(selection, languages=(), kind=None, status=EVERY, authors=None, catalogue=None, hidden=True)
    holding, values = conditions(db, wide)
    name_of = languages.names(db)
    groups = [
        _Group(
            name_of[language], _names(kinds), _names(statuses), _names(named), bool(same), hidden > selection.hidden, n
        )
        for language, kinds, statuses, named, same, hidden, n in db.execute(
            "SELECT language, kinds, statuses, catalogues, same_author, hidden, count(*) FROM cases"
            f" WHERE {holding} GROUP BY 1, 2, 3, 4, 5, 6",
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
        others = {name: all(fit for other, fit in fits.items() if other != name) for name in fits}
        shown += group.n * all(fits.values())
        hidden += group.n * (others["authors"] and selection.authors is None and group.hidden)
        _add(found.languages, [group.language] if others["language"] else [], group.n)
        _add(found.kinds, group.kinds if others["kind"] else [], group.n)
        _add(found.statuses, group.all_statuses if others["status"] else [], group.n)
        _add(found.authors, group.authors - {None} if others["authors"] else [], group.n)
        _add(found.catalogues, group.catalogues if others["catalogue"] else [], group.n)
    return replace(found, total=shown, hidden=hidden)


@dataclass(frozen=True, slots=True)
class _Group:
    """`n` cases that no filter tells apart."""

    language: Language
    kinds: set[Kind]
    statuses: set[str]
    catalogues: set[str]
    same_author: bool
    hidden: bool
    n: int

    @property
    def all_statuses(self) -> set[str]:
        return self.statuses - {OPEN} | {EVERY, OPEN if OPEN in self.statuses else JUDGED}

    @property
    def authors(self) -> set[Any]:
        """The values of the filter by authors that these cases match; None is no filter."""
        return {Authors.SAME if self.same_author else Authors.OTHER} | (set() if self.hidden else {None})


def _keys(order: Order) -> str:
    first = "" if order is Order.SIMILARITY else f"cases.{FIRST_KEYS[order]} DESC, "
    return f"{first}cases.similarity DESC, cases.severity, cases.case_id"


def _described(  # noqa: PLR0917 - the clauses of a query, in their order
    db: sqlite3.Connection, holding: str, values: list[object], keys: str, limit: int, offset: int
) -> list[sqlite3.Row]:
    cursor = db.cursor()
    cursor.row_factory = sqlite3.Row
    return cursor.execute(
        "SELECT case_id, lead, d.language, CAST(author AS TEXT) AS author, cases.similarity, severity, score,"
        " cases.kinds, statuses, flags, open_flags, stories, same_author, hidden, flagged_at, unsure, is_ordered,"
        " history, catalogues, d.title, d.name, d.published_at, d.words, s.copied_words, s.sources"
        f" FROM (SELECT case_id FROM cases WHERE {holding} ORDER BY {keys} LIMIT ? OFFSET ?)"
        " JOIN cases USING (case_id) JOIN described d ON d.id = lead LEFT JOIN similarities s ON s.story_id = lead"
        f" ORDER BY {keys}",
        (*values, limit, offset),
    ).fetchall()


def _add(counter: Counter[Any], names: Iterable[Any], n: int) -> None:
    for name in names:
        counter[name] += n


def _names(listed: str) -> set[str]:
    return {name for name in listed.split(",") if name}
