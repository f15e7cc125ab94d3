"""Laws: clusters are the connected components of the flags, whatever their order; each names its earliest story, its
weakest edge, and two members far apart; a policy keeps one of its members, or all works of the reference.
"""

from hypothesis import given, settings
from hypothesis import strategies as st
from neardup.core.publication_order import make_sort_key
from neardup.core.verify.clusters import (
    POLICIES,
    Cluster,
    Edge,
    Member,
    Policy,
    choose_kept,
    find_cluster_of_each,
    find_clusters,
)
from neardup.records import is_work

from tests.support.sampling import count_examples

edges = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.floats(0.3, 1)).filter(lambda edge: edge[0] < edge[1]),
    max_size=14,
    unique_by=lambda edge: edge[:2],
)
times = st.dictionaries(st.integers(0, 12), st.one_of(st.none(), st.integers(0, 5)))


def reached(start: int, among: list[Edge]) -> dict[int, int]:
    """Steps to every story that the edges lead to."""
    steps, wave = {start: 0}, {start}
    while wave:
        wave = {y for a, b, _ in among for x, y in ((a, b), (b, a)) if x in wave} - steps.keys()
        steps |= dict.fromkeys(wave, max(steps.values()) + 1)
    return steps


@given(edges, times)
def test_cluster_is_a_connected_component(found: list[Edge], published: dict[int, int | None]) -> None:
    made = find_clusters(found, published)
    stories = {story for edge in found for story in edge[:2]}
    assert {frozenset(cluster.stories) for cluster in made} == {frozenset(reached(s, found)) for s in stories}
    assert sorted(len(cluster.stories) for cluster in made) == [len(c.stories) for c in made][::-1], "largest first"


@given(edges, times)
def test_cluster_names_earliest_story_weakest_edge_and_ends(
    found: list[Edge], published: dict[int, int | None]
) -> None:
    for cluster in find_clusters(found, published):
        known = [(published[s], s) for s in cluster.stories if published.get(s) is not None]
        assert cluster.stories[0] == (min(known)[1] if known else min(cluster.stories))
        inside = [edge for edge in found if edge[0] in cluster.stories]
        assert cluster.weakest in inside and cluster.weakest[2] == min(edge[2] for edge in inside)
        first, second = cluster.ends
        assert reached(first, inside)[second] == cluster.steps >= max(reached(cluster.stories[0], inside).values()) / 1
        assert cluster.steps <= max(max(reached(s, inside).values()) for s in cluster.stories)


@given(edges, times)
def test_earliest_is_named_only_if_no_other_can_be(found: list[Edge], published: dict[int, int | None]) -> None:
    for cluster in find_clusters(found, published):
        at = [published.get(story) for story in cluster.stories]
        assert cluster.undated == at.count(None)
        is_known = None not in at and at.count(min(time for time in at if time is not None)) == 1
        assert cluster.earliest == (cluster.stories[0] if is_known else None)


@given(edges.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))), times)
def test_order_of_edges_changes_nothing(both: tuple[list[Edge], list[Edge]], published: dict[int, int | None]) -> None:
    assert find_clusters(both[0], published) == find_clusters(both[1], published)


@given(edges, times)
def test_each_story_maps_to_its_cluster(found: list[Edge], published: dict[int, int | None]) -> None:
    made = find_clusters(found, published)
    wanted = {story: (member.stories[0], len(member.stories)) for member in made for story in member.stories}
    assert find_cluster_of_each(found, published) == wanted


def test_chain_is_long_and_clique_is_not() -> None:
    [chain] = find_clusters([(1, 2, 0.9), (2, 3, 0.5), (3, 4, 0.8)], {1: 30, 2: 20, 3: 10, 4: 40})
    assert chain == Cluster((3, 2, 1, 4), (2, 3, 0.5), (1, 4), 3, 0, 3)
    [clique] = find_clusters([(1, 2, 1.0), (1, 3, 1.0), (2, 3, 1.0)], {})
    assert (clique.stories, clique.steps) == ((1, 2, 3), 1)


TIMES = st.none() | st.integers(0, 3)
MEMBERS = st.lists(
    st.builds(Member, st.integers(-3, 20), TIMES, st.integers(1, 3)),
    min_size=1,
    max_size=8,
    unique_by=lambda member: member[0],
)


@settings(max_examples=count_examples(50))
@given(MEMBERS, st.sampled_from(POLICIES))
def test_one_member_is_kept_or_all_works_and_the_order_of_the_members_does_not_matter(
    members: list[Member], policy: Policy
) -> None:
    keep = choose_kept(members, policy)
    works = {member.story_id for member in members if is_work(member.story_id)}
    assert keep == works if policy == "reference" and works else len(keep) == 1
    assert keep <= {member.story_id for member in members}
    assert choose_kept(sorted(members, key=lambda member: member.story_id), policy) == keep


@settings(max_examples=count_examples(50))
@given(MEMBERS)
def test_each_policy_keeps_what_it_names(members: list[Member]) -> None:
    [earliest], [newest], [longest] = (choose_kept(members, policy) for policy in ("earliest", "newest", "longest"))
    by_id = {member.story_id: member for member in members}
    assert earliest == min(by_id, key=lambda story_id: make_sort_key(by_id[story_id].published, story_id))
    dates = [member.published for member in members if member.published is not None]
    assert by_id[newest].published == max(dates, default=None)
    assert by_id[longest].words == max(member.words for member in members)
