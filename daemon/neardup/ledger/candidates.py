"""Candidates: nominated pairs that are yet to be verified.

Indexes only nominate, and may nominate far more than moderators can look at: the thousandth copy of a template has a
thousand matches.  So a pair counts as a match of the story with the higher id, which has the best `max_matches` by
whole texts, and as many by passages.  A pair is no candidate while a verdict suppresses it.  The table also holds near
misses, which neardup.ledger.verification writes.

Which matches a story has follows from the set of stories, not from their order.  Stories mostly come in the order of
their ids, and then all matches of a story are known when it comes.  What happens later is settled at the end of a run:
a story that had more than `max_matches` is looked up once more (`neardup.pipeline.upkeep`) if one of its matches
leaves, if passages become common or cease to be, or if a story with a lower id comes.  Only `crowded_stories` are kept
in mind for that: those that may have too many matches.
"""

import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from neardup.core.verify.suppression import template_suppresses
from neardup.core.verify.tiers import list_kinds_of_meaning, list_kinds_of_passages
from neardup.ledger import AMONG, dump_list, languages, now_ms, similarities, transaction
from neardup.records import BandedFingerprint, Candidate, PairedStory, Verdict, is_work

SIDE = "{0}.id, {0}.language, {0}.path, {0}.text_hash, {0}.simhash, {0}.signature, {0}.words, {0}.shingles"
WIDTH = 8
# The stories that have ?1 as a match: b of a pair, whose id is the higher one.
MATCHED_WITH = (
    "SELECT b FROM flags WHERE a = ?1 AND status <> 'withdrawn' UNION SELECT b FROM candidates WHERE a = ?1"
    " UNION SELECT b FROM suppressed_pairs WHERE a = ?1"
)


class Matches(NamedTuple):
    """The stories that a story was nominated with, best first; `most` is how many matches a story may have.

    Of those with lower ids, which are its own matches, these are all but `left_out`.  `by_passages` are those that
    passages alone nominated.  They have a limit of their own, also of `most`, so that matches by passages and matches
    of whole texts never displace each other.
    """

    story_id: int
    ids: Sequence[int]
    most: int
    by_passages: Sequence[int] = ()
    left_out: int = 0


def nominate(db: sqlite3.Connection, nominated: Matches) -> int:
    """Record a story's matches as candidates, within the caller's transaction; returns how many were left out.

    A match with a higher id that may have too many matches is not paired now: it is selected for again.  A story is
    paired with only one copy of what a verdict calls a template; that verdict suppresses the others.  A pair that is
    flagged already is left alone, unless its flag was only estimated; a near miss is verified again.  Works are not
    paired with works.
    """
    if is_work(nominated.story_id):
        nominated = _leave_out_works(nominated)
    _note_crowd(db, nominated)
    ids = [*nominated.ids, *nominated.by_passages]
    if not ids:
        return nominated.left_out
    on_record = _read_statuses(db, nominated.story_id, ids)
    left_out = sum(
        _nominate(db, nominated.story_id, matches, nominated.most, on_record, by_passages=by_passages)
        for matches, by_passages in ((nominated.ids, False), (nominated.by_passages, True))
    )
    return nominated.left_out + left_out


def _leave_out_works(nominated: Matches) -> Matches:
    """The matches of a work: works of the reference are not compared with each other."""
    ids, by_passages = (
        [match for match in matches if not is_work(match)] for matches in (nominated.ids, nominated.by_passages)
    )
    return nominated._replace(ids=ids, by_passages=by_passages, left_out=0)


def _nominate(
    db: sqlite3.Connection,
    story_id: int,
    ids: Sequence[int],
    most: int,
    on_record: dict[int, tuple[str | None, int | None]],
    *,
    by_passages: bool,
) -> int:
    now, left_out = now_ms(), 0
    template_matched = any(status is not None and template is not None for status, template in on_record.values())
    for match in ids:
        status, template = on_record[match]
        suppressed = template_suppresses(
            is_template=template is not None, has_status=status is not None, template_matched=template_matched
        )
        if suppressed and template is not None:
            suppress(db, _sort_pair(story_id, match), template, now)
        elif match > story_id and status is None and not _has_room(db, match, story_id, most):
            left_out += 1
        else:
            put(db, story_id, match, by_passages=by_passages)
            on_record[match] = (status or "candidate", template)
            template_matched |= template is not None
    return left_out


def offer(db: sqlite3.Connection, story_id: int, matches: Iterable[int], most: int) -> None:
    """Pair a story with further matches that passages nominate, or select all again, if they may be too many.

    The matches have lower ids.  Within the caller's transaction.
    """
    for match in matches:
        if _has_room(db, story_id, match, most):
            put(db, story_id, match, by_passages=True)


# Stories that may have too many matches.


def _note_crowd(db: sqlite3.Connection, nominated: Matches) -> None:
    """Record how many matches a story has, if they are many."""
    own = (sum(match < nominated.story_id for match in matches) for matches in (nominated.ids, nominated.by_passages))
    if (size := max(own) + nominated.left_out) > _limit_uncounted(nominated.most):
        db.execute(
            "INSERT INTO crowded_stories (number, matches, is_cut) SELECT number, ?2, ?3 FROM stories WHERE id = ?1"
            " ON CONFLICT DO UPDATE"
            " SET matches = max(matches, excluded.matches), is_cut = max(is_cut, excluded.is_cut)",
            (nominated.story_id, size, nominated.left_out > 0),
        )


def _limit_uncounted(most: int) -> int:
    """A story that is not among `crowded_stories` has so many matches at most: far fewer than `most`, as nearly all."""
    return most // 2


def _has_room(db: sqlite3.Connection, story_id: int, match: int, most: int) -> bool:
    """Whether a further match of a story can be recorded; if not, its matches are to be selected again.

    No more than `most` matches were nominated so far if it can, however many of them came to nothing.
    """
    if db.execute(
        "SELECT 1 FROM candidates WHERE a = ?1 AND b = ?2 UNION ALL SELECT 1 FROM flags WHERE a = ?1 AND b = ?2"
        " AND status <> 'withdrawn' UNION ALL SELECT 1 FROM suppressed_pairs WHERE a = ?1 AND b = ?2",
        (match, story_id),
    ).fetchone():
        return True
    counted = db.execute(
        "INSERT INTO crowded_stories (number, matches) SELECT number, ?2 FROM stories WHERE id = ?1"
        " ON CONFLICT DO UPDATE SET matches = matches + 1 RETURNING matches, is_cut",
        (story_id, _limit_uncounted(most) + 1),
    ).fetchone()
    if counted is None or (counted[0] <= most and not counted[1]):
        return True
    request_selection(db, [story_id], among="")
    return False


def request_selection(db: sqlite3.Connection, story_ids: Iterable[int], among: str = " AND is_cut") -> None:
    """Have the matches of these stories selected again, of those that were cut, within the caller's transaction.

    With `among` empty, also of those that have many matches without a cut.
    """
    db.execute(
        "UPDATE crowded_stories SET due = due + 1"
        f" WHERE number IN (SELECT number FROM stories WHERE id {AMONG}){among}",
        (dump_list(story_ids),),
    )


def leave_crowds(db: sqlite3.Connection, story_id: int) -> None:
    """Record that a story is about to change or go, within the caller's transaction."""
    db.execute(
        "UPDATE crowded_stories SET due = due + 1 WHERE is_cut AND number IN"
        f" (SELECT number FROM stories WHERE id IN ({MATCHED_WITH}))",
        (story_id,),
    )
    db.execute("DELETE FROM crowded_stories WHERE number = (SELECT number FROM stories WHERE id = ?)", (story_id,))


class CrowdedStory(NamedTuple):
    """A version of a story whose matches are to be selected again; `due` says how often that was asked for."""

    number: int
    due: int
    side: PairedStory

    @property
    def banded(self) -> BandedFingerprint:
        return BandedFingerprint(self.side.language, self.side.simhash, self.side.signature)


def list_due_for_selection(db: sqlite3.Connection, after: int, limit: int) -> list[CrowdedStory]:
    """The first stories with a number above `after` whose matches are to be selected again, by number."""
    rows = db.execute(
        f"SELECT c.number, due, {SIDE.format('s')} FROM crowded_stories c JOIN stories s ON s.number = c.number"
        " WHERE due > 0 AND c.number > ? ORDER BY c.number LIMIT ?",
        (after, limit),
    )
    name_of = languages.map_names(db)
    return [
        CrowdedStory(number, due, PairedStory(n, name_of[language], *rest)) for number, due, n, language, *rest in rows
    ]


def count_due_for_selection(db: sqlite3.Connection) -> int:
    """The number of stories whose matches are to be selected again."""
    return int(db.execute("SELECT count(*) FROM crowded_stories WHERE due > 0").fetchone()[0])


def select_again(db: sqlite3.Connection, stories: Sequence[CrowdedStory], matches: Sequence[Matches]) -> None:
    """Record the matches of crowded stories, and withdraw what is no match any more, in one transaction.

    If that was asked for again since they were looked up, the story waits for another look-up.
    """
    with transaction(db):
        for story, nominated in zip(stories, matches, strict=True):
            is_current = db.execute(
                "DELETE FROM crowded_stories WHERE number = ? AND due = ? RETURNING 1", (story.number, story.due)
            ).fetchone()
            if not is_current:
                continue
            own = {match for match in (*nominated.ids, *nominated.by_passages) if match < nominated.story_id}
            _withdraw_others(db, nominated.story_id, own)
            nominate(db, nominated)
            if _count_present(db, own) < len(own):  # one left meanwhile
                request_selection(db, [nominated.story_id], among="")
        similarities.refresh(db)


def _withdraw_others(db: sqlite3.Connection, story_id: int, matches: Collection[int]) -> None:
    """Withdraw the matches of a story but these."""
    others = f"b = ?2 AND a NOT {AMONG.replace('?', '?1')}"
    for statement in (
        f"DELETE FROM candidates WHERE {others}",
        f"DELETE FROM suppressed_pairs WHERE {others}",
        f"UPDATE flags SET status = 'withdrawn' WHERE {others} AND status IN ('open', 'permitted')",
    ):
        db.execute(statement, (dump_list(matches), story_id))


def _count_present(db: sqlite3.Connection, ids: Collection[int]) -> int:
    return int(db.execute(f"SELECT count(*) FROM stories WHERE id {AMONG}", (dump_list(ids),)).fetchone()[0])


def nominate_again(db: sqlite3.Connection, nominated: Sequence[Matches]) -> None:
    """Record the matches of several stories that were looked up once more, in one transaction."""
    with transaction(db):
        for matches in nominated:
            nominate(db, matches)
            if matches.left_out:
                request_selection(db, [matches.story_id])


def leave_out_templates(db: sqlite3.Connection, story_id: int, ids: Sequence[int]) -> list[int]:
    """The matches of a story that `nominate` would record: one copy of a template at most."""
    on_record, kept = _read_statuses(db, story_id, ids), list[int]()
    template_matched = any(status is not None and template is not None for status, template in on_record.values())
    for match in ids:
        status, template = on_record[match]
        if not template_suppresses(
            is_template=template is not None, has_status=status is not None, template_matched=template_matched
        ):
            template_matched |= template is not None
            kept.append(match)
    return kept


def _read_statuses(
    db: sqlite3.Connection, story_id: int, ids: Sequence[int]
) -> dict[int, tuple[str | None, int | None]]:
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
        (story_id, Verdict.TEMPLATE, json.dumps(list_kinds_of_passages() + list_kinds_of_meaning()), dump_list(ids)),
    )
    return {match: (status, template) for match, status, template in rows}


def _sort_pair(story_id: int, match: int) -> tuple[int, int]:
    return min(story_id, match), max(story_id, match)


def put(db: sqlite3.Connection, story_id: int, match: int, *, by_passages: bool = False) -> int:
    """Make a pair a pending candidate; 1 where something changed, 0 otherwise and for a suppressed pair.

    A candidate by passages that its whole text nominates as well becomes one of whole texts.
    """
    return db.execute(
        "INSERT INTO candidates (a, b, by_passages) SELECT ?1, ?2, ?3"
        " WHERE 2 = (SELECT count(*) FROM stories WHERE id IN (?1, ?2)) AND NOT EXISTS"
        " (SELECT 1 FROM flags WHERE a = ?1 AND b = ?2 AND status <> 'withdrawn' AND NOT estimated)"
        " AND NOT EXISTS (SELECT 1 FROM suppressed_pairs WHERE a = ?1 AND b = ?2)"
        " ON CONFLICT DO UPDATE SET verified_at = NULL, by_passages = min(by_passages, excluded.by_passages)"
        " WHERE verified_at IS NOT NULL OR by_passages > excluded.by_passages",
        (*_sort_pair(story_id, match), by_passages),
    ).rowcount


def request_verification_among(db: sqlite3.Connection, story_ids: Iterable[int]) -> None:
    """Have the undecided flags and near misses among some stories verified again, within the caller's transaction."""
    if ids := list(story_ids):
        request_selection(db, ids)
        chosen = "SELECT value FROM json_each(?1)"
        _request_verification(
            db, f"chosen (id) AS MATERIALIZED ({chosen})", "a IN chosen AND b IN chosen", dump_list(ids)
        )


def request_verification(db: sqlite3.Connection, pairs: Sequence[tuple[int, int]]) -> None:
    """Have those of these pairs that are undecided flags or near misses verified again, in the caller's transaction."""
    chosen = "SELECT value ->> 0, value ->> 1 FROM json_each(?1)"
    _request_verification(db, f"chosen (a, b) AS MATERIALIZED ({chosen})", "(a, b) IN chosen", dump_list(pairs))


def _request_verification(db: sqlite3.Connection, chosen: str, among: str, values: str) -> None:
    db.execute(
        f"WITH {chosen} INSERT INTO candidates (a, b, by_passages) SELECT a, b, by_passages FROM flags"
        f" WHERE status IN ('open', 'permitted') AND {among} ON CONFLICT DO NOTHING",
        (values,),
    )
    db.execute(
        f"WITH {chosen} UPDATE candidates SET verified_at = NULL WHERE verified_at IS NOT NULL AND {among}", (values,)
    )


def is_reverification_possible(db: sqlite3.Connection) -> bool:
    """Whether there is any pair that `request_verification_among` might have verified again."""
    row = db.execute(
        "SELECT EXISTS (SELECT 1 FROM flags WHERE status IN ('open', 'permitted'))"
        " OR EXISTS (SELECT 1 FROM candidates WHERE verified_at IS NOT NULL)"
    ).fetchone()
    return bool(row[0])


def suppress(db: sqlite3.Connection, pair: tuple[int, int], verdict_id: int, now: int) -> None:
    """Record that a verdict suppresses a pair, a < b."""
    db.execute("INSERT OR REPLACE INTO suppressed_pairs VALUES (?, ?, ?, ?)", (*pair, verdict_id, now))


def list_pending(db: sqlite3.Connection, after: tuple[int, int], limit: int) -> list[Candidate]:
    """The next candidates to verify after a pair, in order."""
    return _select(
        db, "INDEXED BY candidates_pending", "(c.a, c.b) > (?, ?) ORDER BY c.a, c.b LIMIT ?", (*after, limit)
    )


def list_pending_of_stories(db: sqlite3.Connection, story_ids: Iterable[int]) -> list[Candidate]:
    """The candidates to verify of some stories."""
    among = "IN (SELECT value FROM json_each(?1))"
    either = f"SELECT a, b FROM candidates WHERE a {among} UNION SELECT a, b FROM candidates WHERE b {among}"
    return _select(db, "", f"(c.a, c.b) IN ({either})", (dump_list(story_ids),))


def read_candidate(db: sqlite3.Connection, pair: tuple[int, int]) -> Candidate | None:
    """The pair a < b as a candidate; None if a story of it is not on record."""
    return next(iter(read_candidates(db, [pair])), None)


def read_candidates(db: sqlite3.Connection, pairs: Iterable[tuple[int, int]]) -> list[Candidate]:
    """These pairs as candidates, whether they are nominated or not; those with a story that is gone are left out."""
    sides = f"{SIDE.format('a')}, {SIDE.format('b')}"
    of = "json_each(?) p JOIN stories a ON a.id = p.value ->> 0 JOIN stories b ON b.id = p.value ->> 1"
    return _read_candidates(db, db.execute(f"SELECT {sides} FROM {of}", (dump_list(pairs),)))


def _select(db: sqlite3.Connection, index: str, condition: str, values: tuple[int | str, ...]) -> list[Candidate]:
    rows = db.execute(
        f"SELECT {SIDE.format('a')}, {SIDE.format('b')} FROM candidates c {index}"
        " JOIN stories a ON a.id = c.a JOIN stories b ON b.id = c.b"
        f" WHERE c.verified_at IS NULL AND {condition}",
        values,
    )
    return _read_candidates(db, rows)


def _read_candidates(db: sqlite3.Connection, rows: Iterable[tuple[Any, ...]]) -> list[Candidate]:
    name_of = languages.map_names(db)
    sides = ((row[:WIDTH], row[WIDTH:]) for row in rows)
    return [Candidate(*(PairedStory(n, name_of[language], *rest) for n, language, *rest in pair)) for pair in sides]


def count_pending(db: sqlite3.Connection) -> int:
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
