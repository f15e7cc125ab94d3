"""Blind second reviews: a share of the decided cases is judged again, by one who is not shown the first verdict.

The cases are chosen by a hash of their ids (multiplicative hashing: Knuth, The Art of Computer Programming, volume 3,
6.4), so that a larger share adds cases and drops none, and nothing in a case decides whether it is chosen.  A case with
one verdict on all of its pairs is reviewed once, by a moderator who gave no verdict on it.  Where the two verdicts
differ, the case is open again, for a third moderator.

How far the two agree beyond chance is Cohen's kappa: J. Cohen, "A coefficient of agreement for nominal scales",
Educational and Psychological Measurement 20 (1960), 37-46.
"""

import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping

from neardup.errors import Conflict
from neardup.ledger import (
    AMONG,
    Row,
    cases,
    dump_list,
    join_conditions,
    languages,
    now_ms,
    select_named_rows,
    transaction,
    verdicts,
)
from neardup.records import DECIDING, Language, Verdict

HASH = "abs(case_id) % 1000003 * 2654435761 % 4294967296"
HASHES = 2**32
ON_THE_CASE = "FROM flags f CROSS JOIN verdicts v ON v.a = f.a AND v.b = f.b WHERE f.case_id = cases.case_id"


def list_waiting(db: sqlite3.Connection, share: float, moderator: str, spoken: Collection[Language] = ()) -> list[int]:
    """The cases that wait for a second review by a moderator, of this share of the decided ones.

    Without `spoken`, they are of every language.
    """
    number_of = languages.map_numbers(db)
    where, values = join_conditions(
        [
            ("open_flags = 0 AND NOT hidden", []),
            (f"statuses {AMONG}", [dump_list(f",{verdict}," for verdict in DECIDING)]),
            (f"{HASH} < ?", [round(share * HASHES)]),
            ("case_id NOT IN (SELECT case_id FROM second_reviews)", []),
            (f"NOT EXISTS (SELECT 1 {ON_THE_CASE} AND v.moderator = ?)", [moderator]),
            *([(f"language {AMONG}", [dump_list(number_of.get(name) for name in spoken)])] if spoken else []),
        ]
    )
    rows = db.execute(f"SELECT case_id FROM cases WHERE {where} ORDER BY {HASH}, case_id", values)
    return [row[0] for row in rows]


def record(  # noqa: PLR0917 - the fields of a form, in their order
    db: sqlite3.Connection, case_id: int, verdict: Verdict, note: str, moderator: str, seen: str
) -> int | None:
    """Record a second review; returns the number of the decision by which the case is open again, None if both agree.

    `seen` is the `verdicts.identify_state` of its flags as they were shown.  Raises Conflict where it has changed, and
    where the case has been reviewed meanwhile.
    """
    with transaction(db):
        flag_ids = cases.list_flags(db, case_id)
        verdicts.refuse_if_changed(db, flag_ids, seen)
        row = db.execute(
            "SELECT v.verdict, v.moderator FROM flags f CROSS JOIN active_verdicts v ON v.a = f.a AND v.b = f.b"
            " WHERE f.case_id = ? ORDER BY v.verdict_id DESC LIMIT 1",
            (case_id,),
        ).fetchone()
        if row is None or read_of_case(db, case_id) is not None:
            raise Conflict("this case does not wait for a second review any more")
        first, first_moderator = row
        db.execute(
            "INSERT INTO second_reviews VALUES (?, ?, ?, ?, ?, ?, ?)",
            (case_id, first, first_moderator, verdict, moderator, note, now_ms()),
        )
        return None if verdict == first else verdicts.give(db, flag_ids, Verdict.REOPENED, note, moderator)


def read_of_case(db: sqlite3.Connection, case_id: int) -> Row | None:
    """The second review of a case; None without one.

    Columns: first, first_moderator, second, second_moderator, note, reviewed_at.
    """
    found: Row | None = select_named_rows(
        db,
        "SELECT first, first_moderator, second, second_moderator, note, reviewed_at FROM second_reviews"
        " WHERE case_id = ?",
        (case_id,),
    ).fetchone()
    return found


def count_verdicts(db: sqlite3.Connection) -> Counter[tuple[Verdict, Verdict]]:
    """How many cases were judged twice, by the first verdict and the second."""
    rows = db.execute("SELECT first, second, count(*) FROM second_reviews GROUP BY 1, 2")
    return Counter({(Verdict(first), Verdict(second)): n for first, second, n in rows})


def compute_kappa(counts: Mapping[tuple[Verdict, Verdict], int]) -> float | None:
    """Cohen's kappa of two moderators: (p_o - p_e) / (1 - p_e).

    p_o is the share of the cases on which they agree, p_e the share on which they would by chance, each with the
    frequencies of the own verdicts.  None without cases, and where both always give one and the same verdict.
    """
    n = sum(counts.values())
    firsts, seconds = Counter[Verdict](), Counter[Verdict]()
    for (first, second), cases_judged in counts.items():
        firsts[first] += cases_judged
        seconds[second] += cases_judged
    by_chance = sum(firsts[verdict] * seconds[verdict] for verdict in firsts)  # p_e, times n squared
    if by_chance == n * n:
        return None
    agreeing = sum(counts.get((verdict, verdict), 0) for verdict in firsts)
    return (agreeing * n - by_chance) / (n * n - by_chance)
