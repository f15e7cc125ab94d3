"""A cluster as a small graph: its stories on a circle, in the order of publication, and the flags between them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from neardup.core.verify.clusters import Cluster, Edge

MAX_DRAWN = 24
SIZE, RADIUS = 300, 132  # of the drawing, and of the circle in its middle


@dataclass(frozen=True, slots=True)
class Member:
    """A story of a cluster; `number` is its place in the order of publication, from 1, and `letter` A or B."""

    number: int
    story_id: int
    title: str | None
    letter: str | None
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """Two members that are flagged, and the larger of their scores, 0 to 1."""

    a: Member
    b: Member
    score: float
    weakest: bool
    shown: bool  # it is the pair on the page


@dataclass(frozen=True, slots=True)
class Graph:
    """What is drawn of a cluster of `stories`, `left_out` of them not; the first member is likely the original."""

    members: tuple[Member, ...]
    edges: tuple[DrawnEdge, ...]
    stories: int
    left_out: int
    steps: int
    size: int = SIZE


def graph(cluster: Cluster, edges: Sequence[Edge], pair: tuple[int, ...], titles: Mapping[int, str | None]) -> Graph:
    """The cluster of a pair (A, B), or of nobody's, and its edges, in any order -> what is drawn.

    The pair, the original and the ends of the weakest edge are always among the MAX_DRAWN, the others in
    the order of publication.
    """
    number = {story: n for n, story in enumerate(cluster.stories, 1)}
    first = dict.fromkeys((*pair, cluster.stories[0], *cluster.weakest[:2], *cluster.stories))
    drawn = sorted((story for story in first if story in number), key=lambda story: number[story])
    if len(drawn) > MAX_DRAWN:
        kept = set(list(first)[:MAX_DRAWN])
        drawn = [story for story in drawn if story in kept]
    letters = dict(zip(pair, "AB", strict=False))
    members = {
        story: Member(number[story], story, titles.get(story), letters.get(story), *_place(n, len(drawn)))
        for n, story in enumerate(drawn)
    }
    joined = [
        DrawnEdge(members[a], members[b], score, {a, b} == set(cluster.weakest[:2]), {a, b} == set(pair))
        for a, b, score in sorted(edges)
        if a in members and b in members
    ]
    joined.sort(key=lambda edge: (edge.weakest, edge.shown))  # what stands out is drawn over the rest
    return Graph(
        tuple(members.values()), tuple(joined), len(cluster.stories), len(cluster.stories) - len(members), cluster.steps
    )


def _place(n: int, of: int) -> tuple[float, float]:
    """The first stands at the top, the others go round with the clock."""
    angle = 2 * math.pi * n / of - math.pi / 2
    return round(SIZE / 2 + RADIUS * math.cos(angle), 1), round(SIZE / 2 + RADIUS * math.sin(angle), 1)
