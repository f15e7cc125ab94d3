"""The rows of an export of the members of clusters, the same in every format."""

import sqlite3
from collections.abc import Iterator

from neardup.core.publication_order import sort_key
from neardup.core.verify.clusters import Member, Policy, choose_kept
from neardup.ledger import clusters
from neardup.ledger.flags import Selection
from neardup.moderation.export.table import ExportRow, Table
from neardup.records import rfc3339

TIMES = frozenset({"published_at", "updated_at", "known_since"})
MEMBERS = Table(
    rows="members",
    columns=(
        "cluster_id",
        "cluster_size",
        "story_id",
        "keep",
        "language",
        "title",
        "author_id",
        "published_at",
        "updated_at",
        "known_since",
        "words",
        "path",
        "name",
        "catalogue",
        "licence",
    ),
    ids=frozenset({"cluster_id", "story_id"}),
    times=TIMES,
    floats=frozenset(),
    integers=frozenset({"cluster_size", "words"}),
    booleans=frozenset({"keep"}),
    widths={"language": 12, "title": 40},
)


def member_rows(db: sqlite3.Connection, selection: Selection, policy: Policy) -> Iterator[ExportRow]:
    """A row for each member of the selected clusters: the largest cluster first, in it those to keep first."""
    for cluster_id, members in clusters.select_members(db, selection):
        keep = choose_kept([Member(one["id"], one["published_at"], one["words"]) for one in members], policy)
        ascending = sorted(members, key=lambda one: (one["id"] not in keep, sort_key(one["published_at"], one["id"])))
        for one in ascending:
            row = dict(one) | {"cluster_id": cluster_id, "cluster_size": len(members), "story_id": one["id"]}
            row |= {"keep": one["id"] in keep} | {column: rfc3339(one[column]) for column in TIMES}
            yield {column: row[column] for column in MEMBERS.columns}
