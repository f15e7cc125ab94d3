"""The clusters that flags form, without those that are withdrawn or decided to be not similar."""

import json
import sqlite3
from collections.abc import Sequence

from neardup.core.verify import clusters as core
from neardup.core.verify.clusters import Cluster, Edge
from neardup.ledger import flags


def of_flags(db: sqlite3.Connection) -> list[Cluster]:
    """All clusters, the largest first."""
    return _of(db, flags.edges(db))


def around(db: sqlite3.Connection, story_id: int) -> Cluster | None:
    """The cluster of a story; None where no flag joins it with another."""
    found = _of(db, flags.edges_around(db, story_id))
    return found[0] if found else None


def by_story(db: sqlite3.Connection) -> dict[int, tuple[int, int]]:
    """Each story of a cluster -> the cluster's first story, which names the cluster, and its size."""
    edges = flags.edges(db)
    return core.by_story(edges, _published(db, edges))


def _of(db: sqlite3.Connection, edges: Sequence[Edge]) -> list[Cluster]:
    return core.clusters(edges, _published(db, edges))


def _published(db: sqlite3.Connection, edges: Sequence[Edge]) -> dict[int, int | None]:
    stories = {story for a, b, _ in edges for story in (a, b)}
    rows = db.execute(
        "SELECT id, published_at FROM stories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(stories)),),
    )
    return dict(rows)
