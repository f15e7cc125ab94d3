"""Cases: the flags that moderators decide as one, and the leases by which no two moderators work on one.

The stories that flags join into a cluster are one case, and so is a story in no cluster with the sources it copies: a
flag belongs to the case of its later story.  The later stories of all flags between two serials that match are one case
(neardup.ledger.serials), in which each chapter keeps its other sources.  A case's id is the lowest id among the stories
that are joined, works apart, or else that of its one later story.

A pair decided as not similar still joins its two stories while no flag with another status joins either of them, so
that a case decided as a whole stays one; otherwise it does not, so that one false match splits the case.

Triggers mark the flags that change; `refresh` brings the cases up to date, and is called before cases are read.

A lease ends when its moderator is done with the case, or LEASE_MS after the moderator's last activity on it.
"""

import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec import Struct

from neardup.core.verify.clusters import find_roots
from neardup.core.verify.tiers import list_kinds
from neardup.errors import Conflict
from neardup.ledger import AMONG, Row, dump_list, languages, now_ms, select_named_rows, transaction
from neardup.ledger.flags import JOINING
from neardup.records import DECIDING, STATUSES, Kind, Language, Verdict, format_time, is_work

FLAGS_AT_ONCE = 5_000  # bounds the memory, and how long a run waits for the ledger
COLUMNS = (
    "SELECT f.*, s.similarity, w.catalogue, p.match, iif(f.later = f.a, f.author_a, f.author_b) AS author FROM"
    " (SELECT f.flag_id, f.a, f.b, f.kind, f.severity, f.joins_clusters, f.status, f.flagged_at, f.language,"
    " f.author_a, f.author_b, f.same_author, f.case_id,"
    " iif((x.sort_time, x.id) < (y.sort_time, y.id), y.id, x.id) AS later, f.later_id IS NOT NULL AS is_ordered"
    " FROM flags f CROSS JOIN stories x ON x.id = f.a CROSS JOIN stories y ON y.id = f.b"
    " WHERE +f.status <> 'withdrawn' AND {where}) f LEFT JOIN similarities s ON s.story_id = f.later"
    " LEFT JOIN works w ON w.story_id = f.a LEFT JOIN chapter_pairs p ON p.a = f.a AND p.b = f.b"
)
PUT = (
    "INSERT INTO cases (case_id, lead, language, author, similarity, severity, kinds, statuses, flags,"
    " open_flags, stories, same_author, hidden, opened_at, flagged_at, unsure, is_ordered, catalogues,"
    " decided_at, decided_by) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
KINDS = list_kinds()
# The flags of the serials that match one in which a story is a chapter.
OF_SERIALS = (
    "f.flag_id IN (SELECT flag_id FROM chapter_pairs p JOIN flags USING (a, b) WHERE p.match IN"
    f" (SELECT match FROM chapter_pairs WHERE {{side}} {AMONG} AND match IS NOT NULL))"
)
Flags = dict[int, Row]  # by flag_id
LEASE_MS = 10 * 60_000
DAY_MS = 86_400_000
DECIDED = "decided_at >= ? AND open_flags = 0 AND NOT hidden"


class OpenCases(Struct, frozen=True):
    """The cases with an open pair, and the number of these pairs."""

    cases: int
    pairs: int


def is_due(db: sqlite3.Connection) -> bool:
    """Whether flags have changed since the last `refresh`."""
    row = db.execute("SELECT EXISTS (SELECT 1 FROM due_flags) OR EXISTS (SELECT 1 FROM due_cases)").fetchone()
    return bool(row[0])


def count_open_cases(db: sqlite3.Connection) -> OpenCases:
    """The open cases that the desk lists, as of the last `refresh`."""
    row = db.execute("SELECT count(*), coalesce(sum(open_flags), 0) FROM cases WHERE open_flags > 0 AND NOT hidden")
    return OpenCases(*row.fetchone())


def find_case(db: sqlite3.Connection, story_id: int) -> int | None:
    """The id of the case that a story belongs to, or else of one that it is a source in; None where there is none."""
    if db.execute("SELECT 1 FROM cases WHERE case_id = ?", (story_id,)).fetchone():
        return story_id
    rows = _select_flags(db, "f.case_id IS NOT NULL AND (f.a = ?1 OR f.b = ?1)", story_id)
    order = sorted(rows.values(), key=lambda row: (not row["joins_clusters"], row["later"] != story_id, row["case_id"]))
    return order[0]["case_id"] if order else None


def list_flags(db: sqlite3.Connection, case_id: int) -> list[int]:
    """The ids of the flags that count in a case.

    Those that `detection.same_author` leaves out count only where there are no others.
    """
    return list(read_statuses(db, case_id))


def read_statuses(db: sqlite3.Connection, case_id: int) -> dict[int, str]:
    """The status of each flag that counts in a case, by its id, the most severe first."""
    rows = db.execute(
        "SELECT flag_id, status FROM flags WHERE case_id = ?1 AND same_author ="
        " (SELECT min(same_author) FROM flags WHERE case_id = ?1) ORDER BY severity, strength DESC, a, b",
        (case_id,),
    )
    return dict(rows.fetchall())


def refresh(db: sqlite3.Connection) -> None:
    """Bring the cases up to date, in transactions of about FLAGS_AT_ONCE flags."""
    while is_due(db):
        with transaction(db):
            _refresh_some(db)


def _refresh_some(db: sqlite3.Connection) -> None:
    due = _select_ids(db, "SELECT flag_id FROM due_flags ORDER BY flag_id LIMIT ?", FLAGS_AT_ONCE)
    diminished = _select_ids(db, "SELECT case_id FROM due_cases ORDER BY case_id LIMIT ?", FLAGS_AT_ONCE)
    touched = diminished | _select_ids(
        db, f"SELECT DISTINCT case_id FROM flags WHERE flag_id {AMONG} AND case_id IS NOT NULL", dump_list(due)
    )
    found = _select_flags(db, f"f.flag_id {AMONG}", dump_list(due)) | _select_flags(
        db, f"f.case_id {AMONG}", dump_list(touched)
    )
    stories = _add_clusters(db, found)
    more = (stories | {row["case_id"] for row in found.values()} - {None}) - touched
    found |= _select_flags(db, f"f.case_id {AMONG}", dump_list(more))
    case_of = _group_flags(found.values())

    db.execute(f"UPDATE flags SET case_id = NULL WHERE status = 'withdrawn' AND flag_id {AMONG}", (dump_list(due),))
    moved = ((case_of[n], n) for n, row in found.items() if row["case_id"] != case_of[n])
    db.executemany("UPDATE flags SET case_id = ? WHERE flag_id = ?", moved)
    _put(db, touched | more | set(case_of.values()), found, case_of)
    db.execute(f"DELETE FROM due_flags WHERE flag_id {AMONG}", (dump_list(due | found.keys()),))
    db.execute(f"DELETE FROM due_cases WHERE case_id {AMONG}", (dump_list(diminished),))


def _add_clusters(db: sqlite3.Connection, found: Flags) -> set[int]:
    """Add the flags of all clusters and serials that these flags touch; returns the stories of these."""
    stories: set[int] = set()
    reached = {story for row in found.values() for story in _list_joined_stories(row)}
    while reached:
        stories |= reached
        adjacent = {
            n: row
            for side in "ab"
            for where in (f"f.joins_clusters AND f.{side} {AMONG}", OF_SERIALS.format(side=side))
            for n, row in _select_flags(db, where, dump_list(reached)).items()
        }
        found |= adjacent
        reached = {story for row in adjacent.values() for story in _list_joined_stories(row)} - stories
    return stories


def _list_joined_stories(row: Row) -> tuple[int, ...]:
    return (row["a"], row["b"]) if row["joins_clusters"] else (row["later"],)


def _group_flags(rows: Iterable[Row]) -> dict[int, int]:
    """The case of each flag, by flag_id."""
    rows = list(rows)
    joining = [(row["a"], row["b"], 1.0) for row in rows if row["joins_clusters"] and row["status"] in JOINING]
    joined = {story for edge in joining for story in edge[:2]}
    joining += [
        (row["a"], row["b"], 1.0)
        for row in rows
        if row["joins_clusters"] and row["status"] == Verdict.NOT_SIMILAR and not joined & {row["a"], row["b"]}
    ]
    first_of: dict[int, int] = {}  # of each pair of serials that match, the later story of one flag
    joining += [
        (first_of.setdefault(row["match"], row["later"]), row["later"], 1.0) for row in rows if row["match"] is not None
    ]
    top_of = find_roots(joining)
    lowest: dict[int, int] = {}
    for story, top in top_of.items():
        if not is_work(story):  # a case keeps its id when a work joins it or leaves
            lowest[top] = min(lowest.get(top, story), story)
    return {row["flag_id"]: lowest[top_of[row["later"]]] if row["later"] in top_of else row["later"] for row in rows}


def _put(db: sqlite3.Connection, touched: Iterable[int], found: Flags, case_of: dict[int, int]) -> None:
    """Write the rows of the touched cases again."""
    flags: defaultdict[int, list[Row]] = defaultdict(list)
    for flag_id, case_id in case_of.items():
        flags[case_id].append(found[flag_id])
    asking, last = _read_asking(db, case_of), _list_last_verdicts(db, case_of)
    cases = dump_list(touched)
    authors = _select_ids(db, f"SELECT DISTINCT author FROM cases WHERE case_id {AMONG} AND author IS NOT NULL", cases)
    db.execute(f"DELETE FROM cases WHERE case_id {AMONG}", (cases,))
    db.executemany(PUT, (_make_row(case_id, rows, asking, last) for case_id, rows in flags.items()))
    authors |= _select_ids(db, f"SELECT DISTINCT author FROM cases WHERE case_id {AMONG} AND author IS NOT NULL", cases)
    db.execute(
        "UPDATE cases SET history = known.n FROM (SELECT value AS author, (SELECT count(*) FROM cases c WHERE"
        f" c.author = value AND instr(c.statuses, ',{Verdict.PLAGIARISM},')) AS n FROM json_each(?)) known"
        " WHERE cases.author = known.author AND history <> known.n",
        (dump_list(authors),),
    )


def _make_row(
    case_id: int, every: Sequence[Row], asking: dict[int, str], last: dict[int, tuple[int, int, str]]
) -> tuple[object, ...]:
    # flags.same_author marks what `detection.same_author` leaves out, cases.same_author a case all by one author
    is_unlisted = min(row["same_author"] for row in every)
    rows = [row for row in every if row["same_author"] == is_unlisted]
    lead = min(rows, key=lambda row: (-(row["similarity"] or 0.0), row["later"]))
    found_kinds, statuses = {row["kind"] for row in rows}, [row["status"] for row in rows]
    return (
        case_id,
        lead["later"],
        lead["language"],
        lead["author"],
        lead["similarity"] or 0.0,
        min(row["severity"] for row in rows),  # the lowest number is the most severe
        _join_with_commas(kind for kind in KINDS if kind in found_kinds),
        _join_with_commas(status for status in STATUSES if status in statuses),
        len(rows),
        statuses.count("open"),
        len({story for row in rows for story in (row["a"], row["b"])}),
        all(row["author_a"] is not None and row["author_a"] == row["author_b"] for row in rows),  # cases.same_author
        is_unlisted,
        min(row["flagged_at"] for row in rows),
        max(row["flagged_at"] for row in rows),
        json.dumps(sorted({asking[row["flag_id"]] for row in rows if row["flag_id"] in asking}), ensure_ascii=False),
        all(row["is_ordered"] for row in rows if row["later"] == lead["later"]),
        _join_with_commas(sorted({row["catalogue"] for row in rows} - {None})),
        *max((last[row["flag_id"]] for row in every if row["flag_id"] in last), default=(None, None, None))[1:],
    )


def _read_asking(db: sqlite3.Connection, flag_ids: Iterable[int]) -> dict[int, str]:
    """The moderator who last asked for a second opinion on each of these flags, of those that are open."""
    rows = db.execute(
        "SELECT flag_id, v.moderator FROM flags f CROSS JOIN verdicts v ON v.verdict_id = (SELECT max(verdict_id)"
        " FROM verdicts w WHERE w.a = f.a AND w.b = f.b AND w.undone_at IS NULL)"
        f" WHERE flag_id {AMONG} AND f.status = 'open' AND v.verdict = ?",
        (dump_list(flag_ids), Verdict.UNSURE),
    )
    return dict(rows.fetchall())


def _list_last_verdicts(db: sqlite3.Connection, flag_ids: Iterable[int]) -> dict[int, tuple[int, int, str]]:
    """The last verdict that stands and decides each of these flags, of those with one: its id, time and moderator."""
    rows = db.execute(
        "SELECT flag_id, max(v.verdict_id), v.decided_at, v.moderator"  # SQLite reads the other columns of the latest
        " FROM flags f CROSS JOIN verdicts v ON v.a = f.a AND v.b = f.b"
        f" WHERE flag_id {AMONG} AND v.undone_at IS NULL AND v.verdict {AMONG} GROUP BY flag_id",
        (dump_list(flag_ids), dump_list(DECIDING)),
    )
    return {flag_id: tuple(row) for flag_id, *row in rows}


def _select_flags(db: sqlite3.Connection, where: str, value: object) -> Flags:
    return {row["flag_id"]: row for row in select_named_rows(db, COLUMNS.format(where=where), (value,))}


def _select_ids(db: sqlite3.Connection, query: str, value: object) -> set[int]:
    return {row[0] for row in db.execute(query, (value,))}


def _join_with_commas(values: Iterable[str]) -> str:
    return f",{','.join(values)},"


# Leases.


class CaseHeld(Conflict):
    """Another moderator holds the case."""


class Lease(Struct, frozen=True):
    """The moderator who holds a case, and until when, in milliseconds."""

    case_id: int
    moderator: str
    until: int


def take_lease(db: sqlite3.Connection, case_id: int, moderator: str) -> Lease:
    """Lease a case to a moderator, or renew the lease; returns the lease of another where that one holds it."""
    with transaction(db):
        held, now = read_held_leases(db, [case_id]).get(case_id), now_ms()
        if held is not None and held.moderator != moderator:
            return held
        db.execute("DELETE FROM leases WHERE until <= ?", (now,))
        db.execute(
            "INSERT INTO leases VALUES (?, ?, ?, ?) ON CONFLICT (case_id) DO UPDATE SET until = excluded.until",
            (case_id, moderator, now, now + LEASE_MS),
        )
        return Lease(case_id, moderator, now + LEASE_MS)


def release_leases(db: sqlite3.Connection, moderator: str, case_ids: Iterable[int]) -> None:
    """End a moderator's leases of these cases."""
    with transaction(db):
        db.executemany("DELETE FROM leases WHERE moderator = ? AND case_id = ?", ((moderator, n) for n in case_ids))


def read_held_leases(db: sqlite3.Connection, case_ids: Iterable[int]) -> dict[int, Lease]:
    """The leases of those of these cases that a moderator holds now."""
    rows = db.execute(
        f"SELECT case_id, moderator, until FROM leases WHERE case_id {AMONG} AND until > ?",
        (dump_list(case_ids), now_ms()),
    )
    return {row[0]: Lease(*row) for row in rows}


def refuse_if_leased(db: sqlite3.Connection, flag_ids: Iterable[int], moderator: str) -> None:
    """Raise CaseHeld if another moderator holds the case of one of these flags."""
    rows = db.execute(
        f"SELECT DISTINCT case_id FROM flags WHERE flag_id {AMONG} AND case_id IS NOT NULL", (dump_list(flag_ids),)
    )
    for lease in read_held_leases(db, [row[0] for row in rows]).values():
        if lease.moderator != moderator:
            raise explain_lease(lease)


def explain_lease(lease: Lease) -> CaseHeld:
    """The error for a moderator who acts on a case that another has leased."""
    return CaseHeld(f"{lease.moderator} has this case open, until {format_time(lease.until)} at the latest")


# Statistics: what moderators have decided lately and how fast, and what waits.  Days are those of UTC.  A verdict that
# was undone does not count, nor one that decides nothing.  A case is decided once none of its pairs is open, by the
# last verdict on them.


class Waiting(Struct, frozen=True):
    """How long cases waited until they were decided, in milliseconds: the median, and what nine in ten kept to."""

    cases: int
    median: int
    ninth_decile: int


def count_opened(db: sqlite3.Connection, since: int) -> Counter[tuple[Kind, int]]:
    """The cases whose first flag was made since a time, by most severe kind and by the day, counted from 1970."""
    rows = db.execute(
        f"SELECT kinds, opened_at / {DAY_MS}, count(*) FROM cases WHERE opened_at >= ? AND NOT hidden GROUP BY 1, 2",
        (since,),
    )
    opened: Counter[tuple[Kind, int]] = Counter()
    for kinds, day, n in rows:
        opened[_choose_most_severe(kinds), day] += n
    return opened


def count_decided(db: sqlite3.Connection, since: int) -> Counter[tuple[Kind, str, int]]:
    """The cases that were decided since a time: by most severe kind, moderator, and day, counted from 1970."""
    rows = db.execute(
        f"SELECT kinds, decided_by, decided_at / {DAY_MS}, count(*) FROM cases WHERE {DECIDED} GROUP BY 1, 2, 3",
        (since,),
    )
    decided: Counter[tuple[Kind, str, int]] = Counter()
    for kinds, moderator, day, n in rows:
        decided[_choose_most_severe(kinds), moderator, day] += n
    return decided


def list_waits(db: sqlite3.Connection, since: int) -> list[int]:
    """How long each case that was decided since a time had waited since its first flag, in milliseconds."""
    rows = db.execute(f"SELECT max(decided_at - opened_at, 0) FROM cases WHERE {DECIDED}", (since,))
    return [wait for (wait,) in rows]


def measure_waiting(waits: Iterable[int]) -> Waiting | None:
    """How long cases waited, of the length for each; None if there are none."""
    lengths = sorted(waits)
    if not lengths:
        return None
    return Waiting(len(lengths), lengths[(len(lengths) - 1) // 2], lengths[(9 * len(lengths) - 1) // 10])


def _choose_most_severe(kinds: str) -> Kind:
    return kinds.strip(",").partition(",")[0]


def find_oldest_open(db: sqlite3.Connection) -> tuple[int, int] | None:
    """The case with the flag that has waited longest, and since when in milliseconds; None if none is open."""
    found = db.execute(
        "SELECT case_id, flagged_at FROM flags WHERE status = 'open' AND same_author = 0 AND case_id IS NOT NULL"
        " ORDER BY flagged_at LIMIT 1"
    ).fetchone()
    return found and tuple(found)


def count_open_by_language(db: sqlite3.Connection) -> Counter[Language]:
    """The open cases that the desk lists, by language."""
    name_of = languages.map_names(db)
    rows = db.execute("SELECT language, count(*) FROM cases WHERE open_flags > 0 AND NOT hidden GROUP BY 1")
    return Counter({name_of[language]: n for language, n in rows})


def count_undecided(db: sqlite3.Connection, now: int) -> Counter[str]:
    """By moderator, the open cases that one has a lease of at `now`, or asked for a second opinion on."""
    rows = db.execute(
        "SELECT moderator, count(*) FROM"
        " (SELECT moderator, case_id FROM leases JOIN cases USING (case_id) WHERE until > ? AND open_flags > 0"
        " UNION SELECT value, case_id FROM cases, json_each(unsure) WHERE unsure <> '[]' AND open_flags > 0)"
        " GROUP BY 1",
        (now,),
    )
    return Counter(dict(rows.fetchall()))


def count_flagged(db: sqlite3.Connection, since: int) -> Counter[tuple[Language, Kind]]:
    """The pairs that were flagged since a time and are flagged still, by language and kind."""
    name_of = languages.map_names(db)
    rows = db.execute(
        f"SELECT language, kind, count(*) FROM flags WHERE status IN ({', '.join('?' * len(STATUSES))})"
        " AND same_author IN (0, 1) AND flagged_at >= ? GROUP BY 1, 2",
        (*STATUSES, since),
    )
    return Counter({(name_of[language], kind): n for language, kind, n in rows})


def count_fingerprinted(db: sqlite3.Connection, since: int) -> int:
    """The stories that the runs begun since a time have fingerprinted, without the works of the reference."""
    row = db.execute(
        "SELECT coalesce(sum(counts ->> 'fingerprinted'), 0) FROM runs"
        " WHERE started_at >= ? AND command <> 'reference'",
        (since,),
    ).fetchone()
    return int(row[0])
