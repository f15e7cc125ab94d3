"""The cases of a selection of flags.  `ledger.cases` keeps which case a flag belongs to."""

import sqlite3
from dataclasses import dataclass

from neardup.core.verify.tiers import kinds, tier_of
from neardup.ledger import languages
from neardup.ledger.selection import Selection, conditions
from neardup.records import Kind, Language

CASE = "coalesce(case_id, -flag_id)"  # a flag that has no case yet is one by itself


@dataclass(frozen=True, slots=True)
class FlaggedCase:
    """A case with flags of a selection: how many there are, and the most severe kind of them.

    `lead` is the story that the case is about; None where the case is not on record yet.
    """

    case_id: int
    lead: int | None
    language: Language
    kind: Kind
    flags: int


def of_selection(db: sqlite3.Connection, selection: Selection) -> list[FlaggedCase]:
    """The cases of the selected flags, the most similar at the top, then by severity."""
    holding, values = conditions(db, selection)
    name_of = languages.names(db)
    kind_of = {tier_of(kind).severity: kind for kind in kinds()}
    rows = db.execute(
        "SELECT f.case_id, lead, f.language, f.severity, f.flags FROM"
        f" (SELECT {CASE} AS case_id, min(language) AS language, min(severity) AS severity, count(*) AS flags"
        f" FROM flags WHERE {holding} GROUP BY 1) f LEFT JOIN cases c ON c.case_id = f.case_id"
        " ORDER BY c.similarity DESC, f.severity, f.flags DESC, f.case_id",
        values,
    )
    return [
        FlaggedCase(case_id, lead, name_of[language], kind_of[severity], flags)
        for case_id, lead, language, severity, flags in rows
    ]


def best_flags(db: sqlite3.Connection, selection: Selection, case: FlaggedCase, limit: int) -> list[int]:
    """The ids of the selected flags of a case: those of its lead are at the top, then the most severe."""
    holding, values = conditions(db, selection, by_flag_id=True)
    named = ("flag_id", -case.case_id) if case.lead is None else ("case_id", case.case_id)
    rows = db.execute(
        f"SELECT flag_id FROM flags WHERE {holding} AND {named[0]} = ?"
        " ORDER BY ? IN (a, b) DESC, severity, strength DESC, a, b LIMIT ?",
        (*values, named[1], case.lead, limit),
    )
    return [row[0] for row in rows]
