"""The clusters that flags form: the graph of the flags whose kinds join stories, and its connected parts.

Withdrawn flags and those decided to be not similar join nothing.  A cluster is named by its first story.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence

from neardup.core.verify import clusters as core
from neardup.core.verify.clusters import Cluster, Edge
from neardup.ledger import AMONG, Row, dump_list, stories
from neardup.ledger.flags import JOINING, Selection, make_condition


def list_edges(db: sqlite3.Connection) -> list[Edge]:
    """The flags that join stories into clusters, as edges of a graph: a, b and the similarity of the pair."""
    joins_clusters = f"joins_clusters AND status IN {JOINING}"
    return db.execute(f"SELECT a, b, similarity FROM flags WHERE {joins_clusters} ORDER BY a, b").fetchall()


def list_edges_around(db: sqlite3.Connection, story_id: int) -> list[Edge]:
    """The edges within the cluster of a story, as `edges` returns them."""
    where, values = make_condition(db, Selection(statuses=JOINING, cluster=story_id, same_author=True))
    return db.execute(
        f"SELECT a, b, similarity FROM flags WHERE joins_clusters AND {where} ORDER BY a, b", values
    ).fetchall()


def list_edges_of_case(db: sqlite3.Connection, case_id: int) -> tuple[list[Edge], dict[int, int | None]]:
    """The edges within the cluster of a case, as `edges` returns them, and when each story was published."""
    rows = db.execute(
        "SELECT a, b, similarity, published_a, published_b FROM flags"
        f" WHERE case_id = ? AND joins_clusters AND +status IN {JOINING} ORDER BY a, b",
        (case_id,),
    ).fetchall()
    published = {row[0]: row[3] for row in rows} | {row[1]: row[4] for row in rows}
    return [row[:3] for row in rows], published


def find_all(db: sqlite3.Connection) -> list[Cluster]:
    """All clusters, the largest first."""
    return _find(db, list_edges(db))


def find_around(db: sqlite3.Connection, story_id: int) -> tuple[Cluster, list[Edge]] | None:
    """The cluster of a story and the flags that join it; None where no flag joins it with another story."""
    joining = list_edges_around(db, story_id)
    return (_find(db, joining)[0], joining) if joining else None


def find_of_case(db: sqlite3.Connection, case_id: int) -> tuple[Cluster, list[Edge]] | None:
    """The cluster of a case, as `around` returns it for its lead; the cases must be up to date."""
    joining, published = list_edges_of_case(db, case_id)
    return (core.find_clusters(joining, published)[0], joining) if joining else None


def map_stories(db: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Each story of a cluster -> the cluster's first story, which names the cluster, and its size."""
    joining = list_edges(db)
    return core.find_cluster_of_each(joining, _read_publication_times(db, joining))


def select_members(db: sqlite3.Connection, selection: Selection) -> Iterator[tuple[int, list[Row]]]:
    """The clusters to which a flag of a selection belongs, the largest first, each with its members.

    A cluster is named by its first story, as in `by_story`.  The rows are those of the view `described`.
    """
    cluster_of = map_stories(db)
    where, values = make_condition(db, selection)
    flagged = db.execute(f"SELECT a, b FROM flags WHERE joins_clusters AND {where}", values)
    chosen = {cluster_of[a] for a, b in flagged if a in cluster_of and cluster_of[a] == cluster_of.get(b)}
    members = defaultdict[int, list[int]](list)
    for story_id, cluster in cluster_of.items():
        if cluster in chosen:
            members[cluster[0]].append(story_id)
    for first in sorted(members, key=lambda first: (-len(members[first]), first)):
        yield first, list(stories.describe(db, members[first]).values())


def _find(db: sqlite3.Connection, joining: Sequence[Edge]) -> list[Cluster]:
    return core.find_clusters(joining, _read_publication_times(db, joining))


def _read_publication_times(db: sqlite3.Connection, joining: Sequence[Edge]) -> dict[int, int | None]:
    ids = {story_id for a, b, _ in joining for story_id in (a, b)}
    rows = db.execute(f"SELECT id, published_at FROM stories WHERE id {AMONG}", (dump_list(ids),))
    return dict(rows)
