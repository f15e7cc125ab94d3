"""What verdicts keep from being flagged again, and what a new flag is told of them.

A pair judged not similar or a template is not flagged again as the same kind or a lesser one.  Nor is a
pair that was never flagged before, of two stories that stand in one such decision, the verdict on a
whole cluster.  The pairs kept so are on record until what kept them stands no longer.
"""

import sqlite3
from typing import NamedTuple

from neardup.ledger import languages
from neardup.records import Kind, Language, Verdict

REMEMBERED = (Verdict.NOT_SIMILAR, Verdict.TEMPLATE)
SEVERITY = {kind: n for n, kind in enumerate(Kind)}  # the worst is the least


class Standing(NamedTuple):
    """A verdict that stands, and the kind of what it was said of."""

    verdict_id: int
    verdict: Verdict
    kind: Kind


def standing(db: sqlite3.Connection, pair: tuple[int, int]) -> Standing | None:
    """The verdict that stands on a pair, a < b."""
    return _latest(db, "a = ? AND b = ?", *pair)


def holds(found: Standing, kind: Kind) -> bool:
    """Whether it was said of a pair of this kind or a worse one."""
    return SEVERITY[found.kind] <= SEVERITY[kind]


def of_decision(db: sqlite3.Connection, pair: tuple[int, int]) -> Standing | None:
    """The latest remembered verdict on several pairs at once in which both of these stories stand.

    Its kind is the worst of those pairs that either of them stands in.
    """
    one, other = (_decisions(db, story_id) for story_id in pair)
    return max(
        (
            Standing(
                max(mine.verdict_id, its.verdict_id), mine.verdict, min(mine.kind, its.kind, key=SEVERITY.__getitem__)
            )
            for decision, mine in one.items()
            if (its := other.get(decision)) is not None
        ),
        default=None,
    )


def _decisions(db: sqlite3.Connection, story_id: int) -> dict[int, Standing]:
    """The remembered decisions that a story stands in, each with its latest verdict and the worst kind."""
    found: dict[int, Standing] = {}
    rows = db.execute(
        "SELECT decision, verdict_id, verdict, kind FROM standing WHERE (a = ?1 OR b = ?1) AND verdict IN (?2, ?3)"
        " ORDER BY verdict_id",
        (story_id, *REMEMBERED),
    )
    for decision, verdict_id, verdict, kind in rows:
        before = found.get(decision)
        worst = min(Kind(kind), before.kind if before else Kind(kind), key=SEVERITY.__getitem__)
        found[decision] = Standing(verdict_id, Verdict(verdict), worst)
    return found


def context_of(db: sqlite3.Connection, pair: tuple[int, int]) -> Standing | None:
    """The latest standing verdict on a pair of either of these stories."""
    return _latest(db, "a IN (?1, ?2) OR b IN (?1, ?2)", *pair)


def _latest(db: sqlite3.Connection, condition: str, *values: object) -> Standing | None:
    row = db.execute(
        f"SELECT verdict_id, verdict, kind FROM standing WHERE {condition} ORDER BY verdict_id DESC LIMIT 1", values
    ).fetchone()
    return row and Standing(row[0], Verdict(row[1]), Kind(row[2]))


def keep(db: sqlite3.Connection, pair: tuple[int, int], verdict_id: int, now: int) -> None:
    """Put on record that a verdict kept a pair, a < b, from being flagged."""
    db.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", (*pair, verdict_id, now))


def kept_counts(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Pairs kept from being flagged, by language and verdict."""
    return _counts(db, "kept JOIN verdicts v USING (verdict_id) WHERE true")


def context_counts(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Open flags of which a story stands in a pair judged before, by language and that verdict."""
    return _counts(db, "flags f JOIN verdicts v ON v.verdict_id = f.context WHERE f.status = 'open'")


def _counts(db: sqlite3.Connection, rows: str) -> dict[tuple[str, str], int]:
    counted = db.execute(
        f"SELECT (SELECT name FROM languages WHERE number = v.language) AS name, v.verdict, count(*) FROM {rows}"
        " GROUP BY name, v.verdict ORDER BY name, v.verdict"
    )
    return {(language, verdict): n for language, verdict, n in counted}


def most_judged(db: sqlite3.Connection, language: Language) -> int:
    """In how many judged pairs any one story of a language stands, at the most."""
    sides = " UNION ALL ".join(f"SELECT {side} AS story FROM standing WHERE language = ?1" for side in "ab")
    return int(
        db.execute(
            f"SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM ({sides}) GROUP BY story)",
            (languages.numbers(db).get(language),),
        ).fetchone()[0]
    )
