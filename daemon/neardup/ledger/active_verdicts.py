"""The active verdicts: what suppression is decided by, and the pairs that they suppress.

neardup.core.verify.suppression decides; the functions here gather its facts and record its rulings, within the
caller's transaction.
"""

import sqlite3

from neardup.core.verify.suppression import SUPPRESSING, ActiveVerdict, Decisions, Ruling, find_most_severe, rule
from neardup.records import Kind, Verdict


def read_of_pair(db: sqlite3.Connection, pair: tuple[int, int]) -> ActiveVerdict | None:
    """The active verdict on a pair, a < b."""
    return _read_latest(db, "a = ? AND b = ?", *pair)


def read_on_either_story(db: sqlite3.Connection, pair: tuple[int, int]) -> ActiveVerdict | None:
    """The latest active verdict on any pair of either of these stories: the context of a new flag."""
    return _read_latest(db, "a IN (?1, ?2) OR b IN (?1, ?2)", *pair)


def _read_latest(db: sqlite3.Connection, condition: str, *values: object) -> ActiveVerdict | None:
    row = db.execute(
        f"SELECT verdict_id, verdict, kind FROM active_verdicts WHERE {condition} ORDER BY verdict_id DESC LIMIT 1",
        values,
    ).fetchone()
    return row and ActiveVerdict(row[0], Verdict(row[1]), row[2])


def read_decisions(db: sqlite3.Connection, story_id: int) -> Decisions:
    """The decisions on cases that suppress pairs of a story, each with its latest verdict and the most severe kind.

    They suppress no pair of two sources of one story, which need not match each other.
    """
    found: dict[tuple[int, int], ActiveVerdict] = {}
    rows = db.execute(
        "SELECT decision, coalesce(case_id, 0), verdict_id, verdict, kind FROM active_verdicts WHERE (a = ?1 OR b = ?1)"
        " AND verdict IN (?2, ?3) AND joins_clusters ORDER BY verdict_id",
        (story_id, *SUPPRESSING),
    )
    for number, case_id, verdict_id, verdict, kind in rows:
        decision = number, case_id
        earlier: Kind = found[decision].kind if decision in found else kind
        found[decision] = ActiveVerdict(verdict_id, Verdict(verdict), find_most_severe(earlier, kind))
    return found


def make_ruling_on_pair(db: sqlite3.Connection, pair: tuple[int, int], kind: Kind) -> Ruling:
    """What the verdicts on record mean for a pair, a < b, that was verified to be of this kind."""
    flagged_as = db.execute("SELECT kind FROM flags WHERE a = ? AND b = ? AND status <> 'withdrawn'", pair).fetchone()
    own = read_of_pair(db, pair)
    undecided = own is None and flagged_as is None  # decisions count only for an undecided pair
    on_a, on_b = (read_decisions(db, story_id) if undecided else {} for story_id in pair)
    return rule(kind, flagged_as[0] if flagged_as else None, own, (on_a, on_b))


def suppress(db: sqlite3.Connection, pair: tuple[int, int], verdict_id: int, now: int) -> None:
    """Record that a verdict suppresses a pair, a < b."""
    db.execute("INSERT OR REPLACE INTO suppressed_pairs VALUES (?, ?, ?, ?)", (*pair, verdict_id, now))


def count_suppressed(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Suppressed pairs, by language and verdict."""
    return _count(db, "suppressed_pairs JOIN verdicts v USING (verdict_id) WHERE true")


def count_in_context(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Open flags with a story on which there is an earlier verdict, by language and that verdict."""
    return _count(db, "flags f JOIN verdicts v ON v.verdict_id = f.context WHERE f.status = 'open'")


def _count(db: sqlite3.Connection, rows: str) -> dict[tuple[str, str], int]:
    counted = db.execute(
        f"SELECT (SELECT name FROM languages WHERE number = v.language) AS name, v.verdict, count(*) FROM {rows}"
        " GROUP BY name, v.verdict ORDER BY name, v.verdict"
    )
    return {(language, verdict): n for language, verdict, n in counted}
