"""Clusters: stories joined by verified flags.

Union-find (Tarjan, JACM 1975).  A cluster may be a chain, whose ends have nothing in common; so each cluster names two
members that are far apart, and its weakest edge.  Where a corpus is cleaned of copies, a policy says which members of a
cluster to keep.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Literal, NamedTuple, get_args

from msgspec import Struct

from neardup.core.publication_order import find_earliest, make_sort_key
from neardup.records import is_work

Edge = tuple[int, int, float]  # two stories and their similarity, 0 to 1

Policy = Literal["earliest", "newest", "longest", "reference"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


class Cluster(Struct, frozen=True):
    """Stories joined by flags.

    `stories` are in the order of publication; the last `undated` of them are those without a time, in the order of
    their ids.  `earliest` is that of `core.publication_order`: likely the original, None if it is not known.  `ends`
    are two members that are far apart, with `steps` flags on the shortest path between them: the furthest from the
    first of `stories`, and the furthest from that one.  In a cluster without cycles no two are further apart.
    """

    stories: tuple[int, ...]
    weakest: Edge
    ends: tuple[int, int]
    steps: int
    undated: int
    earliest: int | None


def find_roots(edges: Iterable[Edge]) -> dict[int, int]:
    """Each story of an edge -> the story that represents its cluster."""
    parent: dict[int, int] = {}

    def find(story: int) -> int:
        while (above := parent.setdefault(story, story)) != story:
            parent[story] = parent[above]  # path halving
            story = parent[story]
        return story

    for a, b, _ in edges:
        parent[find(a)] = find(b)
    return {story: find(story) for story in list(parent)}


def find_clusters(edges: Sequence[Edge], published: Mapping[int, int | None]) -> list[Cluster]:
    """The clusters that edges form, the largest first; `published` gives times, None where unknown.

    Among stories of equal times the lowest id comes first, only to have an order.
    """
    root = find_roots(edges)
    members: dict[int, list[int]] = defaultdict(list)
    for story, top in root.items():
        members[top].append(story)
    inside: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        inside[root[edge[0]]].append(edge)

    found = [_describe_cluster(stories, published, inside[top]) for top, stories in members.items()]
    return sorted(found, key=lambda cluster: (-len(cluster.stories), cluster.stories[0]))


def find_cluster_of_each(edges: Sequence[Edge], published: Mapping[int, int | None]) -> dict[int, tuple[int, int]]:
    """Each story of an edge -> its cluster's first story, which names the cluster, and its size.

    Needs less memory than `find_clusters`.
    """
    root = find_roots(edges)
    first: dict[int, int] = {}
    for story, top in root.items():
        first[top] = min(
            first.get(top, story), story, key=lambda story_id: make_sort_key(published.get(story_id), story_id)
        )
    sizes = Counter(root.values())
    cluster_of = {top: (first[top], size) for top, size in sizes.items()}
    return {story: cluster_of[top] for story, top in root.items()}


def _describe_cluster(members: list[int], published: Mapping[int, int | None], edges: list[Edge]) -> Cluster:
    times = {story: published.get(story) for story in members}
    stories = sorted(members, key=lambda story: make_sort_key(times[story], story))
    neighbours: dict[int, list[int]] = defaultdict(list)
    for a, b, _ in edges:
        neighbours[a].append(b)
        neighbours[b].append(a)
    end, _ = _find_furthest(stories[0], neighbours)
    other_end, steps = _find_furthest(end, neighbours)
    weakest = min(edges, key=itemgetter(2, 0, 1))
    ends = min(end, other_end), max(end, other_end)
    undated = sum(time is None for time in times.values())
    return Cluster(tuple(stories), weakest, ends, steps, undated, find_earliest(times))


def _find_furthest(start: int, neighbours: Mapping[int, list[int]]) -> tuple[int, int]:
    """Breadth-first search from `start`: the story furthest away (of several, the lowest id), and its distance."""
    reached, level, steps = {start}, {start}, 0
    while beyond := {neighbour for story in level for neighbour in neighbours[story]} - reached:
        reached |= beyond
        level, steps = beyond, steps + 1
    return min(level), steps


class Member(NamedTuple):
    """A member of a cluster: when it was published, in milliseconds, None if that is not known, and its words."""

    story_id: int
    published: int | None
    words: int


def choose_kept(members: Sequence[Member], policy: Policy) -> set[int]:
    """The ids of the members of a cluster to keep: one story, or all works with the policy `reference`.

    - `earliest`: the first in the order of `make_sort_key`, which has works before stories and unknown dates last.
    - `newest`: the last that has a date; the earliest if none has.
    - `longest`: the one with the most words; of several, the earliest.
    - `reference`: the works of the reference; the earliest if there are none.
    """
    works = {member.story_id for member in members if is_work(member.story_id)}
    if policy == "reference" and works:
        return works
    ascending = sorted(members, key=lambda member: make_sort_key(member.published, member.story_id))
    chosen = ascending[0]
    if policy == "newest":
        dated = [member for member in ascending if member.published is not None]
        chosen = max(dated, key=lambda member: member.published or 0, default=chosen)
    elif policy == "longest":
        chosen = max(ascending, key=lambda member: member.words)
    return {chosen.story_id}
