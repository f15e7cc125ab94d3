"""Candidates: nominated pairs that are yet to be verified.

Indexes only nominate, and may nominate far more than moderators can look at: the thousandth copy of a template has a
thousand matches.  So a story has a limit of open flags and of pairs on their way to one, and a pair is no candidate
while a verdict suppresses it.  The table also holds near misses, which neardup.ledger.verification writes.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from neardup.core.candidates.select import take_within_limit
from neardup.core.verify.suppression import template_suppresses
from neardup.core.verify.tiers import kinds_of_meaning, kinds_of_passages
from neardup.ledger import active_verdicts, json_list, languages, now_ms, transaction
from neardup.records import Candidate, PairedStory, Verdict, is_work

SIDE = "{0}.id, {0}.language, {0}.path, {0}.text_hash, {0}.simhash, {0}.signature, {0}.words, {0}.shingles"
WIDTH = 8


class Matches(NamedTuple):
    """The stories that a story was nominated with, best first; `most` is how many matches a story may have.

    `by_passages` are those that passages alone nominated.  They have a limit of their own, also of `most`, so that
    matches by passages and matches of whole texts never displace each other.
    """

    story_id: int
    ids: Sequence[int]
    most: int
    by_passages: Sequence[int] = ()


def nominate(db: sqlite3.Connection, nominated: Matches) -> int:
    """Record a story's matches as candidates, within the caller's transaction; returns how many were left out.

    Neither side may have more than `most` open flags by passages, nor of the others, see `_open_matches`; pairs with a
    verdict do not count.  A story all of whose matches are full is still paired with the best of them, so that the
    thousandth copy of a template costs one flag and is not missed.  For the same reason, a story is paired with only
    one copy of what a verdict calls a template; that verdict suppresses the others.  A pair that is flagged already is
    left alone, unless its flag was only estimated; a near miss is verified again.  Works are not paired with works.
    """
    if is_work(nominated.story_id):
        nominated = _without_works(nominated)
    ids = [*nominated.ids, *nominated.by_passages]
    if not ids:
        return 0
    on_record = _on_record(db, nominated.story_id, ids)
    return sum(
        _nominate(db, nominated.story_id, some, nominated.most, on_record, by_passages=by_passages)
        for some, by_passages in ((nominated.ids, False), (nominated.by_passages, True))
    )


def _without_works(nominated: Matches) -> Matches:
    """The matches of a work: works of the reference are not compared with each other."""
    ids, by_passages = (
        [match for match in some if not is_work(match)] for some in (nominated.ids, nominated.by_passages)
    )
    return nominated._replace(ids=ids, by_passages=by_passages)


def _nominate(
    db: sqlite3.Connection,
    story_id: int,
    ids: Sequence[int],
    most: int,
    on_record: dict[int, tuple[str | None, int | None]],
    *,
    by_passages: bool,
) -> int:
    now = now_ms()
    template_matched = any(status is not None and template is not None for status, template in on_record.values())

    def without_settled() -> Iterator[int | None]:
        """The matches, None for one that is on record or that the verdict on a template suppresses."""
        for match in ids:
            status, template = on_record[match]
            suppressed = template_suppresses(
                is_template=template is not None, has_status=status is not None, template_matched=template_matched
            )
            if status is not None:
                put(db, story_id, match, by_passages=by_passages)
                yield None
            elif suppressed and template is not None:
                active_verdicts.suppress(db, _pair(story_id, match), template, now)
                yield None
            else:
                yield match

    def take(match: int) -> int:
        nonlocal template_matched
        _, template = on_record[match]
        on_record[match] = ("candidate", template)
        template_matched |= template is not None
        return put(db, story_id, match, by_passages=by_passages)

    return take_within_limit(
        without_settled(),
        most,
        _open_matches(db, story_id, most, by_passages=by_passages),
        lambda match: _open_matches(db, match, most, by_passages=by_passages) >= most,
        take,
    )


def nominate_all(db: sqlite3.Connection, nominated: Sequence[Matches]) -> None:
    """Record the matches of several stories in one transaction."""
    with transaction(db):
        for matches in nominated:
            nominate(db, matches)


def without_templates(db: sqlite3.Connection, story_id: int, ids: Sequence[int]) -> list[int]:
    """The matches of a story that `nominate` would record if no story had too many: one copy of a template at most."""
    on_record, kept = _on_record(db, story_id, ids), list[int]()
    template_matched = any(status is not None and template is not None for status, template in on_record.values())
    for match in ids:
        status, template = on_record[match]
        if not template_suppresses(
            is_template=template is not None, has_status=status is not None, template_matched=template_matched
        ):
            template_matched |= template is not None
            kept.append(match)
    return kept


def _open_matches(db: sqlite3.Connection, story_id: int, most: int, *, by_passages: bool) -> int:
    """The number of a story's open flags, counted up to `most`: those by passages, or the others.

    Pending candidates of whole texts count too, unless they are flags that are verified again.  Those by passages do
    not, because few of them become flags: weak ones would displace better ones that come later.
    """
    undecided = (
        "NOT ?3 AND by_passages = ?3 AND verified_at IS NULL AND NOT EXISTS"
        " (SELECT 1 FROM verdicts v WHERE v.a = t.a AND v.b = t.b AND undone_at IS NULL)"
        " AND NOT EXISTS (SELECT 1 FROM flags f WHERE f.a = t.a AND f.b = t.b AND +f.status = 'open')"
    )
    counted = " UNION ALL ".join(
        f"SELECT 1 FROM {table} t WHERE {side} = ?1 AND {holds}"
        for table, holds in (
            ("flags", "by_passages = ?3 AND +status = 'open'"),
            ("candidates", undecided),
        )  # +: not by the index by status
        for side in "ab"
    )
    return int(db.execute(f"SELECT count(*) FROM ({counted} LIMIT ?2)", (story_id, most, by_passages)).fetchone()[0])


def _on_record(db: sqlite3.Connection, story_id: int, ids: Sequence[int]) -> dict[int, tuple[str | None, int | None]]:
    """Each match -> its status with the story, and the latest verdict that calls it a template.

    The status is that of their flag or, if that was withdrawn, the active verdict; None for a pair that has neither.
    The verdict is None for a match none of whose pairs is a template.  A passage that is a template, such as a prayer,
    does not make its story one, nor does a verdict on what vectors alone found.
    """
    pair = "a = min(value, ?1) AND b = max(value, ?1)"
    rows = db.execute(
        f"SELECT value, coalesce((SELECT status FROM flags WHERE {pair} AND status <> 'withdrawn'),"
        f" (SELECT verdict FROM active_verdicts WHERE {pair})),"
        " (SELECT max(verdict_id) FROM active_verdicts WHERE (a = value OR b = value) AND verdict = ?2"
        " AND kind NOT IN (SELECT value FROM json_each(?3))) FROM json_each(?4)",
        (story_id, Verdict.TEMPLATE, json.dumps(kinds_of_passages() + kinds_of_meaning()), json_list(ids)),
    )
    return {match: (status, template) for match, status, template in rows}


def _pair(story_id: int, match: int) -> tuple[int, int]:
    return min(story_id, match), max(story_id, match)


def put(db: sqlite3.Connection, story_id: int, match: int, *, by_passages: bool = False) -> int:
    """Make a pair a pending candidate; 1 where it was none before, 0 otherwise and for a suppressed pair.

    A candidate by passages that its whole text nominates as well counts as a match of whole texts from then on.
    """
    return db.execute(
        "INSERT INTO candidates (a, b, by_passages) SELECT ?1, ?2, ?3"
        " WHERE 2 = (SELECT count(*) FROM stories WHERE id IN (?1, ?2)) AND NOT EXISTS"
        " (SELECT 1 FROM flags WHERE a = ?1 AND b = ?2 AND status <> 'withdrawn' AND NOT estimated)"
        " AND NOT EXISTS (SELECT 1 FROM suppressed_pairs WHERE a = ?1 AND b = ?2)"
        " ON CONFLICT DO UPDATE SET verified_at = NULL, by_passages = min(by_passages, excluded.by_passages)"
        " WHERE verified_at IS NOT NULL OR by_passages > excluded.by_passages",
        (*_pair(story_id, match), by_passages),
    ).rowcount


def pending(db: sqlite3.Connection, after: tuple[int, int], limit: int) -> list[Candidate]:
    """The next candidates to verify after a pair, in order."""
    return _candidates(
        db, "INDEXED BY candidates_pending", "(c.a, c.b) > (?, ?) ORDER BY c.a, c.b LIMIT ?", (*after, limit)
    )


def pending_of(db: sqlite3.Connection, story_ids: Iterable[int]) -> list[Candidate]:
    """The candidates to verify of some stories."""
    among = "IN (SELECT value FROM json_each(?1))"
    either = f"SELECT a, b FROM candidates WHERE a {among} UNION SELECT a, b FROM candidates WHERE b {among}"
    return _candidates(db, "", f"(c.a, c.b) IN ({either})", (json_list(story_ids),))


def of_pair(db: sqlite3.Connection, pair: tuple[int, int]) -> Candidate | None:
    """The pair a < b as a candidate; None if a story of it is not on record."""
    return next(iter(of_pairs(db, [pair])), None)


def of_pairs(db: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> list[Candidate]:
    """These pairs as candidates, whether they are nominated or not; those with a story that is gone are left out."""
    sides = f"{SIDE.format('a')}, {SIDE.format('b')}"
    of = "json_each(?) p JOIN stories a ON a.id = p.value ->> 0 JOIN stories b ON b.id = p.value ->> 1"
    return _read_candidates(db, db.execute(f"SELECT {sides} FROM {of}", (json_list(pairs),)))


def _candidates(db: sqlite3.Connection, index: str, condition: str, values: tuple[int | str, ...]) -> list[Candidate]:
    rows = db.execute(
        f"SELECT {SIDE.format('a')}, {SIDE.format('b')} FROM candidates c {index}"
        " JOIN stories a ON a.id = c.a JOIN stories b ON b.id = c.b"
        f" WHERE c.verified_at IS NULL AND {condition}",
        values,
    )
    return _read_candidates(db, rows)


def _read_candidates(db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> list[Candidate]:
    name_of = languages.names(db)
    sides = ((row[:WIDTH], row[WIDTH:]) for row in rows)
    return [Candidate(*(PairedStory(n, name_of[language], *rest) for n, language, *rest in pair)) for pair in sides]


def pending_count(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM candidates WHERE verified_at IS NULL").fetchone()[0])


def take(db: sqlite3.Connection, candidate: Candidate) -> bool | None:
    """Remove a pending candidate; returns whether passages alone nominated it.

    None where it is gone, or a story of it no longer has the text that was verified.
    """
    a, b = candidate.a, candidate.b
    rows = db.execute(
        "DELETE FROM candidates WHERE a = ?1 AND b = ?2 AND verified_at IS NULL"
        " AND ?3 = (SELECT text_hash FROM stories WHERE id = ?1)"
        " AND ?4 = (SELECT text_hash FROM stories WHERE id = ?2) RETURNING by_passages",
        (a.id, b.id, a.text_hash, b.text_hash),
    ).fetchall()
    return bool(rows[0][0]) if rows else None
