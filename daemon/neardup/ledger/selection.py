"""Selections of flags: the filters that the export and the review desk share."""

import json
import sqlite3
from dataclasses import dataclass

from neardup.ledger import languages
from neardup.ledger.compact_columns import packed_id
from neardup.records import DECIDING, Kind, Language, Verdict

# A flag of any other status joins no cluster.
JOINING = ("open", *(verdict.value for verdict in DECIDING if verdict is not Verdict.NOT_SIMILAR))


@dataclass(frozen=True, slots=True)
class Selection:
    """Filters of flags, which must all match; an empty one or None matches all.

    `statuses` are "open", "withdrawn" or verdicts.  `score`, 0 to 1, is a minimum for the largest of Jaccard
    similarity and the containments; a pair without these scores the share of equal bits.  `author` and `story`
    match either side; `cluster` is a member of the cluster to select, `case` the id of a case, `catalogue` that of the
    work that is copied.  `since` (inclusive)
    and `until` (exclusive) limit `flagged_at`, in milliseconds.  `only_new` matches flags that were never exported.
    `similarity`, 0 to 1, is a minimum for the similarity of either story.  `same_author` admits the flags between
    stories of one author that `detection.same_author = "hide"` leaves out.
    """

    languages: tuple[Language, ...] = ()
    kinds: tuple[Kind, ...] = ()
    statuses: tuple[str, ...] = ("open",)
    score: float | None = None
    author: str | None = None
    story: int | None = None
    cluster: int | None = None
    case: int | None = None
    catalogue: str | None = None
    since: int | None = None
    until: int | None = None
    only_new: bool = False
    similarity: float | None = None
    same_author: bool = False


def conditions(db: sqlite3.Connection, selection: Selection, *, by_flag_id: bool = False) -> tuple[str, list[object]]:
    """A selection as an SQL condition on the table `flags`, with its values.

    `by_flag_id` says that the query has the ids of the flags already.
    """
    number_of = languages.numbers(db)
    numbers = [number_of.get(language) for language in selection.languages]  # NULL, which no flag has, if unknown
    members = None if selection.cluster is None else json.dumps(sorted(members_of(db, selection.cluster)))
    # The unary + keeps SQLite from scanning the index by status where the stories lead to a few rows.
    leads = by_flag_id or (selection.cluster, selection.case, selection.story) != (None, None, None)
    status = "+status" if leads else "status"
    holding: list[tuple[str, list[object]]] = [("language IS NOT NULL", [])]
    holding += [
        (f"{column} IN ({', '.join('?' * len(values))})", list(values))
        for column, values in ((status, selection.statuses), ("kind", selection.kinds), ("language", numbers))
        if values
    ]
    holding += [
        (f"{column} {comparison} ?", [value])
        for column, comparison, value in (
            ("score", ">=", selection.score),
            ("flagged_at", ">=", selection.since),
            ("flagged_at", "<", selection.until),
        )
        if value is not None
    ]
    if selection.only_new:
        holding.append(("exported_at IS NULL", []))
    if selection.story is not None:
        holding.append(("(a = ? OR b = ?)", [selection.story, selection.story]))
    if selection.case is not None:
        holding.append(("case_id = ?", [selection.case]))
    if selection.catalogue is not None:
        of_catalogue = "EXISTS (SELECT 1 FROM works w WHERE w.story_id = flags.a AND w.catalogue = ?)"
        holding.append((of_catalogue, [selection.catalogue]))
    if selection.author is not None:
        author = packed_id(selection.author)
        holding.append(("(author_a = ? OR author_b = ?)", [author, author]))
    if selection.similarity is not None:
        similar = "IN (SELECT story_id FROM similarities WHERE similarity >= ?)"
        holding.append((f"(a {similar} OR b {similar})", [selection.similarity, selection.similarity]))
    if not selection.same_author:
        holding.append(("NOT same_author", []))
    if members is not None:
        among = "IN (SELECT value FROM json_each(?))"
        holding.append((f"a {among} AND b {among}", [members, members]))
    return " AND ".join(sql for sql, _ in holding), [value for _, values in holding for value in values]


def members_of(db: sqlite3.Connection, story_id: int) -> set[int]:
    """The members of the cluster of a story, which is always one of them."""
    rows = db.execute(
        "WITH RECURSIVE member(id) AS (VALUES (?) UNION SELECT iif(a = id, b, a) FROM member JOIN flags ON"
        f" (a = id OR b = id) AND joins_clusters AND +status IN ({', '.join('?' * len(JOINING))}))"
        " SELECT id FROM member",
        (story_id, *JOINING),
    )
    return {row[0] for row in rows}
