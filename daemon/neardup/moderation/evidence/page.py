"""The evidence page of a pair: the values that its template shows, the drawing of its cluster, and the page as a file.

A cluster is drawn as its stories on a circle, in their order in the cluster, and the flags between them.
"""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from neardup.config import Detection
from neardup.core.fingerprint.word_hashes import PassageHashes
from neardup.core.languages import Languages
from neardup.core.verify.alignment import NO_HASHES
from neardup.core.verify.clusters import Cluster, Edge
from neardup.core.verify.text import Text
from neardup.ledger import flags, open_snapshot, story_rows
from neardup.moderation.evidence.alignment import align_stories, list_story_highlights, sort_passages
from neardup.moderation.export.target import write_atomically
from neardup.moderation.templating import load_assets, make_environment
from neardup.moderation.wording import describe_cluster_order
from neardup.query.compare import (
    Comparer,
    Evidence,
    LoadedStory,
    UnreadableStory,
    choose_thresholds,
    find_evidence,
    load_pair,
    read_common,
    read_evidence,
)

TEMPLATE = "evidence.html.j2"
Stories = Mapping[int, Mapping[str, Any]]

UNKNOWN = {"name": None, "title": None}
MAX_DRAWN = 24
SIZE, RADIUS = 300, 132  # of the drawing and of the circle at its centre, in SVG units


# The drawing of a cluster.


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


def draw_cluster(db: sqlite3.Connection, pair: tuple[int, int]) -> Graph | None:
    """The drawing of the cluster of a pair (A, B) of stories; None unless it has both and another story."""
    found = flags.find_cluster_around(db, pair[0])
    if found is None or len(found[0].stories) <= len(pair) or pair[1] not in found[0].stories:
        return None
    return lay_out(*found, pair, story_rows.describe(db, choose_drawn(found[0], pair)))


# The page.


def render_evidence(
    facts: Evidence,
    a: LoadedStory | UnreadableStory,
    b: LoadedStory | UnreadableStory,
    graph: Graph | None,
    languages: Languages,
) -> str:
    """The evidence page of a pair as one self-contained HTML document."""
    template = make_environment(languages).get_template(TEMPLATE)
    return template.render(**make_template_values(facts, a, b, graph), inline_assets=load_assets(languages))


def make_template_values(
    facts: Evidence, a: LoadedStory | UnreadableStory, b: LoadedStory | UnreadableStory, graph: Graph | None
) -> dict[str, Any]:
    """The values of evidence.html.j2: the evidence for a pair, its stories and its cluster."""
    # an unreadable story is shown without text
    loaded = [story if isinstance(story, LoadedStory) else LoadedStory(Text(""), story.known) for story in (a, b)]
    aligned = align_stories(facts, *loaded)
    return {
        "facts": facts,
        "aligned": aligned,
        "legend": list_story_highlights(aligned),
        "graph": graph,
    }


def gather_evidence(
    detection: Detection,
    a: LoadedStory | UnreadableStory,
    b: LoadedStory | UnreadableStory,
    flag: Mapping[str, Any] | None,
    common: PassageHashes,
) -> Evidence:
    """The evidence for a pair: from its texts, or from its flag where one cannot be read."""
    if isinstance(a, LoadedStory) and isinstance(b, LoadedStory):
        return find_evidence(a, b, choose_thresholds(detection, a, b), common)
    return read_evidence(a, b, flag)


def find_passage(facts: Evidence, word: int) -> int | None:
    """The number of the passage that holds a word of B, or else of the nearest one; None without passages."""
    distances = [
        (max(passage.b.word - word, word - passage.b.word - passage.b.words + 1, 0), number)
        for number, passage in enumerate(sort_passages(facts), 1)
    ]
    return min(distances)[1] if distances else None


async def write_evidence(comparer: Comparer, first: str, second: str, path: Path, languages: Languages) -> None:
    """Write the evidence page of two stories to `path`, atomically; `first` and `second` name them as for `compare`.

    Raises as `load_pair` does, and Fatal for a file that cannot be written.
    """
    a, b = await load_pair(comparer, first, second)
    graph = None
    flag, common = None, NO_HASHES
    if comparer.ledger is not None and "id" in a.known and "id" in b.known:
        with open_snapshot(comparer.ledger) as db:
            pair = a.known["id"], b.known["id"]
            flag = flags.read_pair(db, *pair)
            graph = draw_cluster(db, pair)
            common = read_common(db, a, b)
    page = render_evidence(gather_evidence(comparer.detection, a, b, flag, common), a, b, graph, languages)
    write_atomically(path, lambda file: file.write_text(page, encoding="utf-8"))
