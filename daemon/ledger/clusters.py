"""The clusters of the open flags."""

import json
import sqlite3

from daemon.core.clusters import Cluster, clusters
from daemon.ledger import flags


def of_open_flags(db: sqlite3.Connection) -> list[Cluster]:
    """The clusters that the open flags make, the largest first."""
    edges = flags.edges(db)
    stories = {story for a, b, _ in edges for story in (a, b)}
    rows = db.execute(
        "SELECT id, published_at FROM stories WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(stories)),),
    )
    return clusters(edges, dict(rows))
