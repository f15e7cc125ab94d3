"""The drawing of a cluster: its stories on a circle, in their order in the cluster, and the flags between them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from neardup.core.verify.clusters import Cluster, Edge
from neardup.moderation.wording import describe_cluster_order

Stories = Mapping[int, Mapping[str, Any]]

UNKNOWN = {"name": None, "title": None}
MAX_DRAWN = 24
SIZE, RADIUS = 300, 132  # of the drawing and of the circle at its centre, in SVG units


class Member(Struct, frozen=True):
    """A story of a cluster; `number` is its place in the list, from 1; `letter` is A or B for the page's pair.

    `listed_id` is its name, or its id if it has none.
    """

    number: int
    story_id: int
    listed_id: str
    title: str | None
    letter: str | None
    is_earliest: bool
    x: float
    y: float


class DrawnEdge(Struct, frozen=True):
    """The flag between two members, with the `similarity` of the pair, 0 to 1."""

    a: Member
    b: Member
    similarity: float
    weakest: bool
    shown: bool  # whether it is the pair on the page


class Graph(Struct, frozen=True):
    """The drawing of a cluster of `stories` stories, of which `left_out` are not drawn.

    `order` says in words how they are ordered; `steps` is the number of flags between the ends of the cluster.
    """

    order: str
    members: tuple[Member, ...]
    edges: tuple[DrawnEdge, ...]
    stories: int
    left_out: int
    steps: int
    size: int = SIZE


def choose_drawn(cluster: Cluster, pair: tuple[int, ...]) -> list[int]:
    """The stories of a cluster that are drawn, in its order.

    Of a cluster of more than MAX_DRAWN stories these are the pair, the first story and the ends of the weakest edge,
    then the others in order of publication.
    """
    by_priority = dict.fromkeys((*pair, cluster.stories[0], *cluster.weakest[:2], *cluster.stories[:MAX_DRAWN]))
    kept = set(list(by_priority)[:MAX_DRAWN])
    return [story for story in cluster.stories if story in kept]


def lay_out(cluster: Cluster, edges: Sequence[Edge], pair: tuple[int, ...], known: Stories) -> Graph:
    """Lay out a cluster, given its edges in any order and the pair (A, B) to highlight, or ().

    `known` are the rows in the ledger of the stories that are drawn, by id.
    """
    number = {story: n for n, story in enumerate(cluster.stories, 1)}
    members_drawn = choose_drawn(cluster, pair)
    letters = dict(zip(pair, "AB", strict=False))
    members = {
        story: Member(
            number[story],
            story,
            str(known.get(story, UNKNOWN)["name"] or story),
            known.get(story, UNKNOWN)["title"],
            letters.get(story),
            story == cluster.earliest,
            *_place_member(n, len(members_drawn)),
        )
        for n, story in enumerate(members_drawn)
    }
    drawn_edges = [
        DrawnEdge(members[a], members[b], similarity, {a, b} == set(cluster.weakest[:2]), {a, b} == set(pair))
        for a, b, similarity in sorted(edges)
        if a in members and b in members
    ]
    drawn_edges.sort(key=lambda edge: (edge.weakest, edge.shown))  # later edges are drawn on top
    return Graph(
        describe_cluster_order(cluster),
        tuple(members.values()),
        tuple(drawn_edges),
        len(cluster.stories),
        len(cluster.stories) - len(members),
        cluster.steps,
    )


def _place_member(n: int, count: int) -> tuple[float, float]:
    """The coordinates of member n of `count`: the first is at the top, the others follow clockwise."""
    angle = 2 * math.pi * n / count - math.pi / 2
    return round(SIZE / 2 + RADIUS * math.cos(angle), 1), round(SIZE / 2 + RADIUS * math.sin(angle), 1)
