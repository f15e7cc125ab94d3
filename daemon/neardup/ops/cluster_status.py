"""The clusters of flagged stories, for operators."""

import sqlite3
from dataclasses import dataclass

from neardup.config import Detection
from neardup.ledger import clusters, snapshot, stories

CLUSTERS = 5


@dataclass(frozen=True, slots=True)
class Edge:
    """Two stories of a cluster that a flag connects, and the higher of their scores."""

    a: int
    b: int
    score: float


@dataclass(frozen=True, slots=True)
class Distance:
    """Two stories of a cluster; the shortest path between them has `steps` flags."""

    a: int
    b: int
    steps: int


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """A cluster; it is a `chain` if its two most distant stories have little in common.

    `likely_original` is the story that was published before all others; None if that is not known.
    """

    likely_original: int | None
    size: int
    weakest_edge: Edge
    furthest_apart: Distance
    chain: bool


@dataclass(frozen=True, slots=True)
class ClusterCounts:
    """The number of clusters, and the largest of them."""

    count: int
    largest: list[ClusterStatus]


def cluster_counts(db: sqlite3.Connection, detection: Detection) -> ClusterCounts:
    """The clusters of the open flags, of which the largest CLUSTERS are described."""
    with snapshot(db):
        every = clusters.of_flags(db)
        largest = [
            ClusterStatus(
                likely_original=cluster.earliest,
                size=len(cluster.stories),
                weakest_edge=Edge(a, b, round(score, 4)),
                furthest_apart=Distance(*cluster.ends, cluster.steps),
                chain=cluster.steps > 1 and not _worth_comparing(db, detection, *cluster.ends),
            )
            for cluster in every[:CLUSTERS]
            for a, b, score in [cluster.weakest]
        ]
        return ClusterCounts(len(every), largest)


def _worth_comparing(db: sqlite3.Connection, detection: Detection, a: int, b: int) -> bool:
    """Whether two stories pass the screening of candidates."""
    from neardup.core.candidates.select import worth_comparing  # noqa: PLC0415 - few clusters are chains

    fingerprints = stories.fingerprints(db, [a, b])
    one, other = fingerprints[a], fingerprints[b]
    return worth_comparing(one, other, detection.of(one.language))
