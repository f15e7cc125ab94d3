"""The members of the clusters that flags form."""

import sqlite3
from collections import defaultdict
from collections.abc import Iterator

from neardup.ledger import stories
from neardup.ledger.clusters import by_story
from neardup.ledger.selection import Selection, conditions


def selected(db: sqlite3.Connection, selection: Selection) -> Iterator[tuple[int, list[sqlite3.Row]]]:
    """The clusters to which a flag of a selection belongs, the largest first, each with its members.

    A cluster is named by its first story, as in `clusters.by_story`.  The rows are those of the view `described`.
    """
    cluster_of = by_story(db)
    holding, values = conditions(db, selection)
    flagged = db.execute(f"SELECT a, b FROM flags WHERE joins_clusters AND {holding}", values)
    chosen = {cluster_of[a] for a, b in flagged if a in cluster_of and cluster_of[a] == cluster_of.get(b)}
    members = defaultdict[int, list[int]](list)
    for story_id, cluster in cluster_of.items():
        if cluster in chosen:
            members[cluster[0]].append(story_id)
    for first in sorted(members, key=lambda first: (-len(members[first]), first)):
        yield first, list(stories.describe(db, members[first]).values())
