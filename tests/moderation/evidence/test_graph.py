"""Laws: a cluster is drawn with at most MAX_DRAWN stories, always including the pair, the original and the ends of the
weakest flag, and with every flag between drawn stories; no two stories overlap.
"""

import math

from hypothesis import assume, given
from hypothesis import strategies as st
from neardup.core.verify.clusters import Edge, find_clusters
from neardup.moderation.evidence.graph import MAX_DRAWN, SIZE, lay_out

edges = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.floats(0.3, 1)).filter(lambda edge: edge[0] < edge[1]),
    min_size=1,
    max_size=80,
    unique_by=lambda edge: edge[:2],
)
times = st.dictionaries(st.integers(0, 40), st.integers(0, 5))


@given(edges, times, st.data())
def test_pair_original_and_weakest_are_drawn(found: list[Edge], published: dict[int, int], data: st.DataObject) -> None:
    cluster = find_clusters(found, published)[0]
    inside = [edge for edge in found if edge[0] in cluster.stories]
    pair = data.draw(st.sampled_from(inside))[:2]
    drawn = lay_out(cluster, inside, pair, {pair[0]: {"name": None, "title": "A title"}})
    stories = [member.story_id for member in drawn.members]
    assert stories == [story for story in cluster.stories if story in stories], "not in order of publication"
    earliest = [member.story_id for member in drawn.members if member.is_earliest]
    assert earliest == ([] if cluster.earliest is None else [cluster.earliest])
    assert {*pair, cluster.stories[0], *cluster.weakest[:2]} <= set(stories)
    assert len(stories) == min(len(cluster.stories), MAX_DRAWN)
    assert len(stories) + drawn.left_out == drawn.stories == len(cluster.stories)
    assert [member.number for member in drawn.members] == [cluster.stories.index(story) + 1 for story in stories]
    assert {member.letter: member.story_id for member in drawn.members if member.letter} == {"A": pair[0], "B": pair[1]}
    assert {member.title for member in drawn.members} <= {"A title", None}
    assert sorted((edge.a.story_id, edge.b.story_id, edge.similarity) for edge in drawn.edges) == sorted(
        edge for edge in inside if edge[0] in stories and edge[1] in stories
    )
    assert [edge.similarity for edge in drawn.edges if edge.weakest] == [cluster.weakest[2]]
    assert [{edge.a.story_id, edge.b.story_id} for edge in drawn.edges if edge.shown] == [set(pair)]


@given(edges)
def test_stories_overlap_neither_each_other_nor_the_edge(found: list[Edge]) -> None:
    [cluster, *_] = find_clusters(found, {})
    assume(len(cluster.stories) > 2)
    drawn = lay_out(cluster, [edge for edge in found if edge[0] in cluster.stories], cluster.weakest[:2], {})
    radius = 13
    for n, member in enumerate(drawn.members):
        assert radius < member.x < SIZE - radius and radius < member.y < SIZE - radius
        for other in drawn.members[:n]:
            assert math.dist((member.x, member.y), (other.x, other.y)) > 2 * radius


def test_order_of_the_flags_does_not_matter() -> None:
    found = [(1, 2, 0.9), (2, 3, 0.5), (1, 3, 0.7)]
    [cluster] = find_clusters(found, {})
    assert lay_out(cluster, found, (1, 2), {}) == lay_out(cluster, found[::-1], (1, 2), {})


def test_large_cluster_keeps_pair_original_and_weakest_flag() -> None:
    chain = [(n, n + 1, 0.9) for n in range(60)]
    chain[40] = (40, 41, 0.5)
    [cluster] = find_clusters(chain, {n: n for n in range(61)})
    drawn = lay_out(cluster, chain, (58, 59), {})
    stories = [member.story_id for member in drawn.members]
    assert stories == [*range(MAX_DRAWN - 4), 40, 41, 58, 59]
    assert drawn.left_out == 61 - MAX_DRAWN
