"""Flags: verified pairs that are copies by the thresholds, as the desk, the export and the commands read them.

neardup.ledger.verification writes them, and neardup.ledger.verdicts changes their status.  A selection chooses among
them; the most severe kind is listed first, and of a kind the strongest pair.

The flags whose kinds join stories form clusters; withdrawn flags and those decided to be not similar join nothing.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from neardup.core.publication_order import Dates, find_earlier
from neardup.core.verify import clusters
from neardup.core.verify.clusters import Cluster, Edge
from neardup.ledger import (
    AMONG,
    Row,
    dump_list,
    join_conditions,
    languages,
    list_conditions,
    now_ms,
    select_named_rows,
    transaction,
)
from neardup.ledger.story_rows import describe, pack_id
from neardup.records import STATUSES, Kind, Language, Verdict

# A flag of any other status joins no cluster.
JOINING = tuple(status for status in STATUSES if status != Verdict.NOT_SIMILAR)
PAIR_COLUMNS = (
    "flag_id, kind, language, story_id, matched_id, similarity, hamming, jaccard, containment, matched_containment,"
    " longest_run_words, story_title, matched_title, story_author_id, matched_author_id, story_published_at,"
    " matched_published_at, status, flagged_at, fingerprint_version, estimated,"
    " context, context_note, context_by, context_at, signals, story_path, matched_path, story_name, matched_name,"
    " copied_words, story_updated_at, matched_updated_at, story_known_since, matched_known_since,"
    " verdict, moderator, note, decided_at, undone_at, undone_by, catalogue, licence,"
    " permission_id, permission_licence, permission_until, story_serial, matched_serial"
)
OF_CATALOGUE = "EXISTS (SELECT 1 FROM works w WHERE w.story_id = flags.a AND w.catalogue = ?)"
QUEUE_ORDER = "ORDER BY severity, strength DESC, a, b"


class Selection(Struct, frozen=True):
    """Filters of flags, which must all match; an empty one or None matches all.

    `statuses`: `records.STATUSES` or "withdrawn".  `similarity`, 0 to 1, is a minimum for that of the pair, or of the
    story where stories are selected.  `author` and `story` match either side; `cluster` is a member of the cluster to
    select, `catalogue` that of the work that is copied.  `since` (inclusive) and `until` (exclusive) limit
    `flagged_at`, in milliseconds.  `only_new` matches flags that were never exported.  `same_author` admits the flags
    between stories of one author that `detection.same_author = "hide"` leaves out.
    """

    languages: tuple[Language, ...] = ()
    kinds: tuple[Kind, ...] = ()
    statuses: tuple[str, ...] = ("open",)
    author: str | None = None
    story: int | None = None
    cluster: int | None = None
    catalogue: str | None = None
    since: int | None = None
    until: int | None = None
    only_new: bool = False
    similarity: float | None = None
    same_author: bool = False


OPEN = Selection()


def make_condition(
    db: sqlite3.Connection, selection: Selection, *, by_flag_id: bool = False
) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the table `flags`, with its values.

    `by_flag_id` says that the query has the ids of the flags already.
    """
    number_of = languages.map_numbers(db)
    numbers = [number_of.get(language) for language in selection.languages]  # NULL, which no flag has, if unknown
    members = None if selection.cluster is None else dump_list(sorted(read_cluster(db, selection.cluster)))
    # The unary + keeps SQLite from scanning the index by status where the stories lead to a few rows.
    leads = by_flag_id or (selection.cluster, selection.story) != (None, None)
    status = "+status" if leads else "status"
    clauses: list[tuple[str, list[object]]] = [("language IS NOT NULL", [])]
    clauses += [
        (f"{column} IN ({', '.join('?' * len(values))})", list(values))
        for column, values in ((status, selection.statuses), ("kind", selection.kinds), ("language", numbers))
        if values
    ]
    clauses += list_conditions(
        (
            ("similarity >= ?", selection.similarity),
            ("flagged_at >= ?", selection.since),
            ("flagged_at < ?", selection.until),
            ("(a = ? OR b = ?)", selection.story),
            (OF_CATALOGUE, selection.catalogue),
            ("(author_a = ? OR author_b = ?)", pack_id(selection.author)),
            (f"a {AMONG} AND b {AMONG}", members),
        )
    )
    if selection.only_new:
        clauses.append(("exported_at IS NULL", []))
    if not selection.same_author:
        clauses.append(("NOT same_author", []))
    return join_conditions(clauses)


def read_cluster(db: sqlite3.Connection, story_id: int) -> set[int]:
    """The members of the cluster of a story, which is always one of them."""
    rows = db.execute(
        "WITH RECURSIVE member(id) AS (VALUES (?) UNION SELECT iif(a = id, b, a) FROM member JOIN flags ON"
        f" (a = id OR b = id) AND joins_clusters AND +status IN ({', '.join('?' * len(JOINING))}))"
        " SELECT id FROM member",
        (story_id, *JOINING),
    )
    return {row[0] for row in rows}


def select(db: sqlite3.Connection, selection: Selection = OPEN, *, limit: int = -1, offset: int = 0) -> Iterator[Row]:
    """The flags of a selection, one row a pair, the most severe first.  Columns: PAIR_COLUMNS.

    `context` is the latest verdict on another pair of either story, None for most; `context_note`, `context_by` and
    `context_at` (milliseconds) are its note, its moderator and its time.
    """
    where, values = make_condition(db, selection)
    return select_named_rows(
        db,
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id IN"
        f" (SELECT flag_id FROM flags WHERE {where} {QUEUE_ORDER} LIMIT ? OFFSET ?) {QUEUE_ORDER}",
        (*values, limit, offset),
    )


def read_by_id(db: sqlite3.Connection, flag_ids: Iterable[int]) -> dict[int, Row]:
    """These flags as `select` returns them, by id."""
    rows = select_named_rows(db, f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id {AMONG}", (dump_list(flag_ids),))
    return {row["flag_id"]: row for row in rows}


def list_pairs(db: sqlite3.Connection, flag_ids: Sequence[int]) -> list[dict[str, Any]]:
    """These flags as rows of `pairs`, in their order."""
    found = read_by_id(db, flag_ids)
    return [found[flag_id] for flag_id in flag_ids if flag_id in found]


def read_pair(db: sqlite3.Connection, a: int, b: int) -> dict[str, Any] | None:
    """The flag of two stories, in either order and of any status, as a row of `pairs`; None where there is none."""
    rows = select_named_rows(
        db,
        f"SELECT {PAIR_COLUMNS} FROM pairs WHERE flag_id = (SELECT flag_id FROM flags WHERE a = ? AND b = ?)",
        (min(a, b), max(a, b)),
    )
    return next(rows, None)


def count(db: sqlite3.Connection, selection: Selection = OPEN) -> int:
    """The number of flags in a selection."""
    where, values = make_condition(db, selection)
    return int(db.execute(f"SELECT count(*) FROM flags WHERE {where}", values).fetchone()[0])


def count_open_flags(db: sqlite3.Connection, *, same_author: bool = False) -> dict[str, dict[str, int]]:
    """The number of open flags, by language and kind; `same_author` as in a Selection."""
    out: dict[str, dict[str, int]] = {}
    query = (
        "SELECT name, kind, count(*) FROM flags JOIN languages ON number = language WHERE status = 'open'"
        " AND same_author <= ? GROUP BY 1, 2 ORDER BY 1, 2"
    )
    for language, kind, n in db.execute(query, (same_author,)):
        out.setdefault(language, {})[kind] = n
    return out


def read_languages(db: sqlite3.Connection, flag_ids: Sequence[int]) -> set[Language]:
    """The languages of these flags."""
    rows = db.execute(
        f"SELECT DISTINCT name FROM flags JOIN languages ON number = language WHERE flag_id {AMONG}",
        (dump_list(flag_ids),),
    )
    return {Language(row[0]) for row in rows}


def list_stories(db: sqlite3.Connection, ids: Sequence[int]) -> list[Row]:
    """These stories, in this order, with what became of them.

    Columns: id, name, title, language, author_id, published_at, similarity (None for a story that copies nothing),
    `pairs` (the number of flags), `open` (those without a verdict) and `plagiarism` (those with this verdict).
    """
    of_story = "FROM flags WHERE (a = d.id OR b = d.id) AND +status"
    return select_named_rows(
        db,
        "SELECT d.id, d.name, d.title, d.language, d.author_id, d.published_at, x.similarity,"
        f" (SELECT count(*) {of_story} <> 'withdrawn') AS pairs, (SELECT count(*) {of_story} = 'open') AS open,"
        f" (SELECT count(*) {of_story} = 'plagiarism') AS plagiarism"
        " FROM json_each(?) CROSS JOIN described d ON d.id = value LEFT JOIN similarities x ON x.story_id = d.id"
        " ORDER BY key",
        (dump_list(ids),),
    ).fetchall()


def mark_exported(db: sqlite3.Connection, flag_ids: Sequence[int]) -> None:
    """Record that these flags have been exported."""
    with transaction(db):
        db.executemany(
            "UPDATE flags SET exported_at = ? WHERE flag_id = ? AND exported_at IS NULL",
            ((now_ms(), n) for n in flag_ids),
        )


def find_earlier_story(row: Mapping[str, Any]) -> int | None:
    """The story of a row of the view `pairs` that was published before the other; None if that is not known."""
    matched = Dates(row["matched_published_at"], catalogue=row["catalogue"])
    side = find_earlier(matched, Dates(row["story_published_at"]))
    return None if side is None else row["matched_id" if side == "a" else "story_id"]


# Clusters: the connected parts of the graph of the flags that join stories, each named by its first story.


def find_clusters(db: sqlite3.Connection) -> list[Cluster]:
    """All clusters, the largest first."""
    edges = _list_edges(db)
    return clusters.find_clusters(edges, _read_publication_times(db, edges))


def find_cluster_around(db: sqlite3.Connection, story_id: int) -> tuple[Cluster, list[Edge]] | None:
    """The cluster of a story and the flags that join it; None where no flag joins it with another story."""
    where, values = make_condition(db, Selection(statuses=JOINING, cluster=story_id, same_author=True))
    edges = db.execute(
        f"SELECT a, b, similarity FROM flags WHERE joins_clusters AND {where} ORDER BY a, b", values
    ).fetchall()
    return (clusters.find_clusters(edges, _read_publication_times(db, edges))[0], edges) if edges else None


def find_cluster_of_case(db: sqlite3.Connection, case_id: int) -> tuple[Cluster, list[Edge]] | None:
    """The cluster of a case, as `find_cluster_around` returns it for its lead; the cases must be up to date."""
    rows = db.execute(
        "SELECT a, b, similarity, published_a, published_b FROM flags"
        f" WHERE case_id = ? AND joins_clusters AND +status IN {JOINING} ORDER BY a, b",
        (case_id,),
    ).fetchall()
    published = {row[0]: row[3] for row in rows} | {row[1]: row[4] for row in rows}
    edges = [row[:3] for row in rows]
    return (clusters.find_clusters(edges, published)[0], edges) if edges else None


def map_clusters(db: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Each story of a cluster -> the cluster's first story, which names the cluster, and its size."""
    edges = _list_edges(db)
    return clusters.find_cluster_of_each(edges, _read_publication_times(db, edges))


def select_cluster_members(db: sqlite3.Connection, selection: Selection) -> Iterator[tuple[int, list[Row]]]:
    """The clusters to which a flag of a selection belongs, the largest first, each with its members.

    A cluster is named as in `map_clusters`.  The rows are those of the view `described`.
    """
    cluster_of = map_clusters(db)
    where, values = make_condition(db, selection)
    flagged = db.execute(f"SELECT a, b FROM flags WHERE joins_clusters AND {where}", values)
    chosen = {cluster_of[a] for a, b in flagged if a in cluster_of and cluster_of[a] == cluster_of.get(b)}
    members = defaultdict[int, list[int]](list)
    for story_id, cluster in cluster_of.items():
        if cluster in chosen:
            members[cluster[0]].append(story_id)
    for first in sorted(members, key=lambda first: (-len(members[first]), first)):
        yield first, list(describe(db, members[first]).values())


def _list_edges(db: sqlite3.Connection) -> list[Edge]:
    joining = f"joins_clusters AND status IN {JOINING}"
    return db.execute(f"SELECT a, b, similarity FROM flags WHERE {joining} ORDER BY a, b").fetchall()


def _read_publication_times(db: sqlite3.Connection, edges: Sequence[Edge]) -> dict[int, int | None]:
    ids = {story_id for a, b, _ in edges for story_id in (a, b)}
    return dict(db.execute(f"SELECT id, published_at FROM stories WHERE id {AMONG}", (dump_list(ids),)))
